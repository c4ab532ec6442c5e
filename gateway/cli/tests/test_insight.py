"""`acp insight` over files of trajectories: figures, refusals, exit codes; no gateway runs."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from acp_spec.model.enums import SessionStatus
from acp_spec.model.grounding import Grounding, Review
from acp_spec.model.trajectory import Trajectory
from acp_spec.sdk.cli import Exit
from gateway.cli.insight import app
from gateway.engine.tests.stage import by_seed
from gateway.insight.tests.records import attempt, json_of, record, rewarded

DAY_MS = 86_400_000
OLD, NEW = "until=2025-12-01", "since=2025-12-01"
"""The records begin on 30 November 2025; a day later there is a new version."""


def session(day: int, number: int, *, right: float) -> Trajectory:
    """One question, answered rightly by this chance; the reward says whether it was."""
    name = f"d{day}n{number}"
    good = by_seed(day, number, "right") < right
    version = "1.0.0" if day == 0 else "1.1.0"
    call = attempt(
        f"c-{name}",
        component_version=version,
        arguments=json_of({"kind": ("easy", "hard")[number % 2]}),
        output={"state": "OPEN" if good else "SHUT", "text": f"see case {number}, please"},
    )
    one = record(
        name,
        call,
        input=json_of({"kind": ("easy", "hard")[number % 2]}),
        begun_ms=day * DAY_MS + number,
    )
    return rewarded(one, float(good))


def asked_by(one: Trajectory) -> Trajectory:
    """The same with something in what the desk is given that no other session has."""
    given = {**json.loads(bytes(one.calls[0].arguments)), "by": f"caller of {one.session_id}!"}
    call = msgspec.structs.replace(one.calls[0], arguments=json_of({**given, "at": one.opened_at}))
    return msgspec.structs.replace(one, calls=(call,))


def written(folder: Path, sessions: Iterable[Trajectory]) -> Path:
    lines = [msgspec.json.encode(one) for one in sessions]
    (folder / "records.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """210 sessions of nine right answers in ten, then as many of six in ten."""
    sessions = [session(0, n, right=0.9) for n in range(210)]
    sessions += [session(1, n, right=0.6) for n in range(210)]
    return written(tmp_path_factory.mktemp("worse"), sessions)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def windows(folder: Path) -> Sequence[str | Path]:
    return ("--from", folder, "--baseline", OLD, "--new", NEW)


def test_contribution_names_the_component_that_got_worse(worse: Path) -> None:
    ran = run("contribution", *windows(worse), "--json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    (part,) = (one for one in found["parts"] if one["kind"] == "COMPONENT")
    assert part["name"] == "desk"
    assert part["value"] == pytest.approx(found["change"], abs=0.02)
    assert part["span"]["high"] < -0.1
    shown = run("contribution", *windows(worse))
    assert "desk" in shown.stdout
    assert "in all -0." in shown.stderr


def test_contribution_that_cannot_be_told_exits_as_refused(tmp_path: Path) -> None:
    sessions = [session(day, n, right=0.5) for day in (0, 1) for n in range(20)]
    unlike = [asked_by(one) for one in sessions]
    folder = written(tmp_path, unlike)
    ran = run("contribution", *windows(folder))
    assert ran.exit_code == Exit.REFUSED
    assert "counterparts" in ran.stderr
    alike = run("contribution", *windows(folder), "--only", "ask:/kind", "--json")
    assert alike.exit_code == 0, alike.output
    ignoring = ("--ignore", "/at", "--ignore", "/by")
    assert run("contribution", *windows(folder), *ignoring, "--json").stdout == alike.stdout


def test_drift_finds_the_field_and_exits_as_failed(worse: Path) -> None:
    ran = run("drift", *windows(worse), "--json")
    assert ran.exit_code == Exit.FAILED, ran.output
    found = json.loads(ran.stdout)
    drifted = [one["field"] for one in found["fields"] if one["verdict"] == "DRIFT"]
    assert drifted == ["/state"]
    assert found["fields"][0]["version"] == "1.1.0"
    shown = run("drift", *windows(worse))
    assert "/state (CODE)" in shown.stdout
    assert "/text" not in shown.stdout
    assert "/text" in run("drift", *windows(worse), "--all").stdout


def test_drift_of_too_few_records_says_so_and_is_no_failure(tmp_path: Path) -> None:
    sessions = [session(day, n, right=0.9 - 0.5 * day) for day in (0, 1) for n in range(50)]
    ran = run("drift", *windows(written(tmp_path, sessions)))
    assert ran.exit_code == 0
    assert "have too few records" in ran.stderr


def test_drift_takes_declared_codes_from_a_card(worse: Path, tmp_path: Path) -> None:
    schema = {"properties": {"text": {"enum": ["never seen"]}}}
    action = {"name": "desk.ask", "output_schema": schema}
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"name": "desk", "version": "1.1.0", "actions": [action]}))
    ran = run("drift", *windows(worse), "--card", card, "--json")
    kinds = {one["field"]: one["kind"] for one in json.loads(ran.stdout)["fields"]}
    assert kinds["/text"] == "CODE"
    card.write_text("{}")
    assert run("drift", *windows(worse), "--card", card).exit_code == Exit.USAGE


def test_signals_of_a_window_with_the_variance_from_a_baseline(worse: Path) -> None:
    ran = run("signals", "--from", worse, "--window", NEW, "--baseline", OLD, "--json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["workflows"][0]["succeeded"] == 210
    assert found["workflows"][0]["p95_ms"] == 10
    assert found["highest_fallback"]["component"] == "desk"
    assert found["contribution_variance"] is None, "one component has no variance"
    text = run("signals", "--from", worse, "--window", NEW, "--prometheus").stdout
    assert 'acp_records_success_rate{workflow="four@1.0.0"} 1.0' in text


def test_records_without_rewards_get_those_that_reflectors_and_people_gave(tmp_path: Path) -> None:
    plain = [record(f"s{n}", begun_ms=n * DAY_MS) for n in range(2)]
    ran = run("contribution", *windows(written(tmp_path, plain)), "--reward", "succeeded", "--json")
    assert json.loads(ran.stdout)["baseline"]["mean"] == 1.0


RULES = """
rewards: by_success
version: 1.0.0
rules:
  - {name: done, kind: outcome, part: session, value: "end.status == 'SUCCEEDED' ? 1.0 : 0.0"}
"""


def test_the_change_of_what_reward_rules_make_of_it(worse: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    asked = ("contribution", *windows(worse), "--reward", "session", "--json")
    without = json.loads(run(*asked).stdout)
    assert without["baseline"]["unrewarded"] == 210
    assert "no session with a reward" in without["refused"]
    assert "0.0000" not in run(*asked[:-1]).stdout, "what nobody judged was shown as a mean of 0"
    found = json.loads(run(*asked, "--rules", rules).stdout)
    assert found["baseline"]["mean"] == 1.0
    assert found["change"] == 0.0


def test_sessions_that_wait_for_a_review_happened_and_count(tmp_path: Path) -> None:
    waiting = record("waiting", grounding=Grounding(review=Review.WAITING))
    ran = run("signals", "--from", written(tmp_path, [waiting]), "--json")
    assert json.loads(ran.stdout)["workflows"][0]["succeeded"] == 1


def test_what_is_left_out_is_counted_with_its_reason(tmp_path: Path) -> None:
    sessions = [session(0, 1, right=1.0), session(1, 1, right=1.0)]
    cancelled = record("gone", status=SessionStatus.CANCELLED)
    folder = written(tmp_path, [*sessions, cancelled, record("w", workflow="other@1.0.0")])
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b"no line\n")
    ran = run("contribution", *windows(folder), "--workflow", "four")
    assert "1 x left out: cancelled" in ran.stderr
    assert "1 x left out: another time, workflow or version" in ran.stderr
    assert "1 x left out: lines that are malformed" in ran.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--baseline", "since=monday", "--new", NEW), "is no time such as"),
        (("--baseline", "speed=7", "--new", NEW), "is no part of a window"),
        (("--baseline", "component=desk", "--new", NEW), "is no part of a window"),
        (("--baseline", "", "--new", NEW), "the windows overlap"),
        (("--baseline", OLD, "--new", NEW, "--reward", "speed"), "none of succeeded"),
        (("--baseline", OLD, "--new", NEW, "--only", "ask:kind"), "is not STEP:/pointer"),
    ],
)
def test_wrong_words_are_told_with_the_exit_code_of_wrong_use(
    worse: Path, words: Sequence[str], told: str
) -> None:
    ran = run("contribution", "--from", worse, *words)
    assert (ran.exit_code, told in ran.stderr) == (Exit.USAGE, True), ran.output


def test_a_folder_that_is_none_is_wrong_use(tmp_path: Path) -> None:
    ran = run("signals", "--from", tmp_path / "nowhere")
    assert ran.exit_code == Exit.USAGE
    assert "--from" in ran.stderr


def test_without_numpy_it_says_what_to_install(worse: Path) -> None:
    """And the golden signals need none."""
    program = (
        "import sys\nsys.modules['numpy'] = None\nfrom gateway.cli import main\n"
        f"sys.argv = ['acp', 'insight', *{{words}}, '--from', {str(worse)!r}]\nmain()\n"
    )

    def without(*words: str) -> subprocess.CompletedProcess[str]:
        text = program.replace("{words}", repr(list(words)))
        return subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=False
        )

    ran = without("contribution", "--baseline", OLD, "--new", NEW)
    assert ran.returncode == Exit.REFUSED
    assert "pip install 'acp-decision-gateway[insight]'" in ran.stderr
    assert without("signals").returncode == 0
