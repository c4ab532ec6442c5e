"""Insight over a gateway's records says exactly what it says over the trajectories themselves."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from typer.testing import CliRunner, Result

from acp_spec.model.enums import SessionStatus
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.reward_vector import PartReward, Quality, RewardVector, RulesRef, Validity
from acp_spec.model.trajectory import Attempt, FallbackRow, PlanVersion, Trajectory
from acp_spec.sdk.cli import Exit
from gateway.cli.insight import app
from gateway.cli.insight_records import GatewayRecords
from gateway.cli.remote import Gateway
from gateway.engine.record_blame import of_record
from gateway.engine.tests.stage import by_seed
from gateway.insight.taking import call_samples, session_sample
from gateway.insight.tests.records import attempt, json_of, record, rewarded
from gateway.insight.windows import Window
from gateway.stores.records.tests.childhood import patiently
from gateway.stores.records.tests.sessions import new_log, put
from gateway.stores.trajectory_log import FOLDER
from gateway.tests.e2e.client import Client
from gateway.tests.served import Served, serve_gateway

DAY_MS = 86_400_000
EACH = 60
WINDOWS = ("--baseline", "until=2025-12-01", "--new", "since=2025-12-01", "--workflow", "four")
PLAN = PlanVersion(
    generation=1,
    step="plan",
    call_id="",
    plan=Plan(
        sub_goals=(
            SubGoal(id="fee", action="desk.ask", depends_on=("who",)),
            SubGoal(id="who", action="desk.who"),
        )
    ),
)


def calls(name: str, day: int, number: int) -> Iterator[Attempt]:
    """A sub-goal that ran before the one it comes behind in the plan, and a retry."""
    version = "1.0.0" if day == 0 else "1.1.0"
    good = by_seed(day, number, "right") < (0.9 if day == 0 else 0.5)
    asked = json_of({"kind": number % 2, "by": f"{name}f", "n": 1.0, "big": 12345678901234567890})
    yield attempt(
        f"{name}f",
        step="act",
        sub_goal="fee",
        component_version=version,
        arguments=asked,
        output={"state": "OPEN" if good else "SHUT", "words": f"ü\u2028 {name}"},
    )
    who = f"{name}w"
    if number % 5 == 0:
        yield attempt(who, step="act", sub_goal="who", action="desk.who", failed="TIMEOUT")
        yield attempt(
            who, attempt=2, step="act", sub_goal="who", action="desk.who", output=number % 3
        )
    else:
        yield attempt(who, step="act", sub_goal="who", action="desk.who", output=number % 3)
    yield attempt(f"{name}r", step="act", reused=True, output=1)
    answered = {"verdict": "ACCEPT", "retries_spent": number, "usage": {"tokens": number}}
    judge = attempt(f"{name}a", step="judge", role="REFLECT", action="", output=answered)
    yield msgspec.structs.replace(
        judge, component="judge", sent_at=judge.sent_at if number % 7 else ""
    )


def session(day: int, number: int) -> Trajectory:
    name = f"d{day}n{number:03d}x"
    good = by_seed(day, number, "right") < (0.9 if day == 0 else 0.5)
    status = {3: SessionStatus.FAILED, 4: SessionStatus.CANCELLED}.get(number % 20)
    one = record(
        name,
        *calls(name, day, number),
        status=status or SessionStatus.SUCCEEDED,
        input=json_of({"kind": number % 2, "session": name}),
        begun_ms=day * DAY_MS + number,
        took_ms=10 + number,
        plan=(PLAN,),
        fell_back=number % 9 == 0,
        sequence=1,
        tenant="bank" if number % 6 == 5 else "default",
    )
    one = rewarded(one, *([None] if number % 11 == 0 else [float(good), 0.25]))
    rules = RulesRef(name="bank", version="1", digest="d")
    unjudged = Quality(validity=Validity.NOT_JUDGED, reason="nobody")
    vector = RewardVector(
        rules=rules,
        as_of="",
        session=PartReward(quality=Quality(value=0.1 * (number % 3)) if good else unjudged),
        long_term=PartReward(quality=unjudged),
    )
    if number % 2:
        return msgspec.structs.replace(
            one, rewards=msgspec.structs.replace(one.rewards, vector=vector)
        )
    if number == 8:
        return msgspec.structs.replace(one, fallback=FallbackRow(rule="closed", version="1"))
    return msgspec.structs.replace(one, twin_of="another") if number == 10 else one


SESSIONS = tuple(session(day, number) for day in (0, 1) for number in range(EACH))


BARE = """
workflow: bare
version: 1.0.0
steps: [{name: act, role: execute, action: none, input_mapping: {}}]
output: act.output
"""


class Both(NamedTuple):
    """The same sessions as files and behind a gateway."""

    folder: Path
    served: Served


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("insight")
    log = new_log(folder / "data" / FOLDER)
    put(log, *SESSIONS)
    log.close()
    settings = folder / "settings.yaml"
    # So few rows at once that answers are asked for in halves.
    settings.write_text("records: {start: with_gateway, query_rows_max: 40}\n")
    served = serve_gateway(
        *("--config", str(settings)),
        data_dir=folder / "data",
        log_file=folder / "log",
        environ={},
    )
    try:
        with Client(served.url) as client:
            for _ in patiently():
                reply = client.post("/v1/records/query", {"sql": "SELECT count() FROM v_sessions"})
                if reply.status == 200 and reply.json["rows"] == [[len(SESSIONS)]]:
                    break
        yield Both(folder / "data", served)
    finally:
        served.stop()


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--json"])


QUESTIONS = (
    ("signals", "--workflow", "four"),
    ("signals", "--window", "since=2025-12-01", "--workflow", "four"),
    ("contribution", *WINDOWS),
    ("contribution", *WINDOWS, "--only", "act:/kind", "--only", "input:/kind", "--chain"),
    ("contribution", *WINDOWS, "--only", "input:/kind", "--reward", "succeeded"),
    ("contribution", *WINDOWS, "--only", "act:/kind", "--reward", "quality:helpful"),
    ("contribution", *WINDOWS, "--only", "act:/kind", "--reward", "session"),
    ("contribution", *WINDOWS, "--only", "act:/kind", "--tenant", "bank"),
    ("drift", *WINDOWS),
    ("drift", *WINDOWS, "--ignore", "/by"),
)


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_over_the_records_and_over_the_trajectories_every_figure_is_the_same(
    both: Both, words: tuple[str, ...]
) -> None:
    of_files = run(*words, "--from", str(both.folder))
    of_records = run(*words, "--gateway", both.served.url)
    assert of_files.exit_code in (Exit.OK, Exit.FAILED, Exit.REFUSED), of_files.output
    assert of_records.stdout == of_files.stdout
    assert of_records.exit_code == of_files.exit_code
    assert len(of_files.stdout) > 100


def samples(sessions: Iterable[Trajectory]) -> dict[str, object]:
    """All that insight takes of each session."""
    rewards = ("succeeded", "quality", "quality:helpful", "session", "long_term")
    return {
        one.session_id: (
            [session_sample(one, reward=reward) for reward in rewards],
            list(call_samples(one)),
            list(of_record(one)),
            (one.tenant, one.status, one.twin_of, one.opened_at_ms, one.ended_at_ms, one.fell_back),
        )
        for one in sessions
    }


def of_gateway(both: Both, *windows: Window) -> dict[str, object]:
    with Gateway(both.served.url) as remote:
        return samples(GatewayRecords(remote, windows, with_parts=True))


def test_rows_give_the_same_samples_as_the_trajectories_they_were_made_of(both: Both) -> None:
    assert of_gateway(both, Window(workflow="four")) == samples(SESSIONS)


def test_a_payload_that_is_too_big_for_a_row_is_read_from_the_trajectory(both: Both) -> None:
    with Client(both.served.url) as client:
        client.put_workflow(BARE)
        name = client.open("bare", json.dumps({"x": "x" * 70_000}), deadline_ms=50)
        client.ended(name)
        for _ in patiently():
            asked = {"sql": "SELECT input FROM v_sessions WHERE startsWith(workflow, 'bare')"}
            if client.post("/v1/records/query", asked).json["rows"] == [[""]]:
                break
        whole = msgspec.json.decode(
            client.get(f"/v1/sessions/{name}/trajectory").text, type=Trajectory
        )
        assert of_gateway(both, Window(workflow="bare")) == samples([whole])
        client.delete(f"/v1/sessions/{name}")


def test_rules_of_ones_own_take_whole_trajectories(both: Both, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rewards: x\n")
    refused = run("contribution", *WINDOWS, "--rules", str(rules), "--gateway", both.served.url)
    assert refused.exit_code == Exit.USAGE
    assert "--from DIR" in refused.stderr
