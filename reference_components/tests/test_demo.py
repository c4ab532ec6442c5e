"""`acp demo` as a person runs it: a process, its output, its exit code, and nothing left behind."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_components.hotline.questions import InputError, Question, questions

Needs = Callable[[str], Path]
Demo = Callable[..., subprocess.Popen[bytes]]
ACP = Path(sys.executable).parent / "acp"
DEMO_S = 240.0  # with cold builds of three languages on two busy cores
KEPT = b"everything keeps running"


@pytest.fixture
def demo() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """`demo(folder, *flags, **environ)` runs one, whose files all lie below `folder`; whatever
    still runs when the test is over is told to stop.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(folder: Path, *flags: str, **environ: str) -> subprocess.Popen[bytes]:
        running = subprocess.Popen(
            [ACP, "demo", "--data-dir", folder, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environ},
            cwd=folder.parent,
        )
        started.append(running)
        return running

    yield start
    for running in started:
        if running.poll() is None:
            running.terminate()
            running.communicate()


def finished(running: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = running.communicate(timeout=DEMO_S)
    return running.returncode, out.decode(), err.decode()


def processes_of(folder: Path) -> list[str]:
    """Command lines of processes that work below `folder`: components stand there, gateways name
    it.
    """
    return list(_command_lines(str(folder)))


def pids_in(folder: Path) -> list[int]:
    """Processes whose working directory this is."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and os.readlink(process / "cwd") == str(folder):
                found.append(int(process.name))
    return found


def _command_lines(folder: str) -> Iterator[str]:
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = os.readlink(process / "cwd")
        except OSError:
            continue
        if folder in command or where.startswith(folder):
            yield command


def test_the_demo_runs_five_languages_and_leaves_nothing_behind(
    tmp_path: Path, demo: Demo, needs: Needs
) -> None:
    for tool in ("cobc", "go", "javac", "java", "node", "npm"):
        needs(tool)
    status, out, err = finished(demo(tmp_path / "house", "--json"))
    assert status == 0, err
    told: dict[str, Any] = json.loads(out)
    assert told["problems"] == []
    assert told["missing"] == []
    calls = {one["name"]: one["calls"] for one in told["components"]}
    assert set(calls) == {
        "hotline-planner", "hotline-memory", "hotline-reflector", "ledger", "cards", "rates",
    }  # fmt: skip
    assert min(calls.values()) > 0, calls
    assert told["sessions"] == len(questions(None))
    assert set(told["outcomes"]) <= {"answered", "handed over", "fell back"}
    assert told["outcomes"]["answered"] > told["sessions"] / 2
    assert told["memory"]["changed"] is True
    assert len(told["memory"]["after"]["plan"]) == len(told["memory"]["before"]["plan"]) + 1
    assert told["trajectory"]["session_id"] == told["lineage"]["head"]["session_id"]
    assert processes_of(tmp_path) == []
    (replay,) = [line for line in told["look_next"] if "replay" in line]
    ran = subprocess.run(
        [ACP, *shlex.split(replay)[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "the same" in ran.stdout) == (0, True), ran.stderr


def test_without_any_language_but_python_the_others_are_named_and_their_questions_handed_over(
    tmp_path: Path,
    demo: Demo,
) -> None:
    questions_file = tmp_path / "mine.csv"
    questions_file.write_text("id,text\n1,My top-up is still pending\n2,I lost my card\n")
    flags = ("--json", "--input", str(questions_file))
    status, out, err = finished(demo(tmp_path / "house", *flags, PATH="/nowhere"))
    assert status == 0, err
    told: dict[str, Any] = json.loads(out)
    packages = {one["name"]: one["package"] for one in told["missing"]}
    assert set(packages) == {"ledger", "cards", "rates"}
    assert told["outcomes"] == {"handed over": 2}
    assert told["memory"]["changed"] is True
    status, out, err = finished(demo(tmp_path / "again", "--limit", "1", PATH="/nowhere"))
    assert status == 0, err
    for package in ("gnucobol", "golang-go", "default-jdk-headless", "nodejs"):
        assert f"apt-get install {package}" in err
    assert "handed over" in out
    assert "Where to look next" in out
    assert processes_of(tmp_path) == []


def test_kept_it_runs_until_ctrl_c_which_stops_every_process(tmp_path: Path, demo: Demo) -> None:
    running = demo(tmp_path / "house", "--keep", "--limit", "2", PATH="/nowhere")
    assert running.stderr is not None
    for line in running.stderr:
        if KEPT in line:
            break
    assert len(processes_of(tmp_path)) >= 5
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=DEMO_S)
    assert running.returncode == 0
    assert processes_of(tmp_path) == []


def test_a_component_that_ends_by_itself_is_a_problem_and_no_question_is_lost(
    tmp_path: Path,
    demo: Demo,
) -> None:
    many = tmp_path / "many.csv"
    many.write_text("text\n" + "I do not recognise this direct debit\n" * 60)
    running = demo(tmp_path / "house", "--input", str(many), PATH="/nowhere")
    assert running.stderr is not None
    assert any(b"gateway at" in line for line in running.stderr)
    (memory,) = pids_in(tmp_path / "house" / "components" / "state" / "hotline-memory")
    os.kill(memory, signal.SIGKILL)
    status, out, err = finished(running)
    assert status == 1, err
    assert "hotline-memory ended by itself" in err
    assert "60 sessions" in out
    assert "FAILED" not in out.partition("One session, whole")[0]
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_starts_it_leaves_nothing_behind(
    tmp_path: Path, demo: Demo, number: signal.Signals
) -> None:
    running = demo(tmp_path / "house", PATH="/nowhere")
    pause = threading.Event()
    log = tmp_path / "house" / "components" / "hotline-planner.log"
    while not log.exists() and running.poll() is None:
        pause.wait(0.01)
    running.send_signal(number)
    _, err = running.communicate(timeout=DEMO_S)
    assert running.returncode == 130, err
    assert processes_of(tmp_path) == []


def test_a_file_without_questions_is_wrong_use_and_starts_nothing(
    tmp_path: Path, demo: Demo
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("question\nhello\n")
    status, _, err = finished(demo(tmp_path / "house", "--input", str(wrong)))
    assert status == 2
    assert "column named text" in err
    assert not (tmp_path / "house").exists()


def test_questions_are_spread_over_the_file_and_customers_take_turns(tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("text\n" + "".join(f"question {number}\n" for number in range(100)))
    assert [one.text for one in questions(file, 4)] == [
        "question 0", "question 25", "question 50", "question 75",
    ]  # fmt: skip
    assert [one.customer for one in questions(file)[:4]] == ["ada", "ben", "cleo", "ada"]
    assert len(questions(file, 1000)) == 100


def test_a_file_is_read_as_people_write_it(tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_bytes('\ufefftext,customer\r\n"one\nquestion, two lines",ben\r\n,\r\n'.encode())
    assert questions(file) == [Question(text="one\nquestion, two lines", customer="ben")]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "column named text"), (b"text\n", "no question"), (b"text\n\xff\n", "UTF-8")],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=says):
        questions(file)
    with pytest.raises(InputError, match="No such file"):
        questions(tmp_path / "missing.csv")


def test_our_own_questions_are_not_those_of_banking77(data_file: Callable[[str], Path]) -> None:
    theirs = {one.text.lower() for one in questions(data_file("banking77/test.csv"))}
    assert [one.text for one in questions(None) if one.text.lower() in theirs] == []
