"""Each rule of tidy.py bites what it bans, says where, and leaves good code alone."""

import subprocess
from pathlib import Path

import pytest

import tidy
from tidy import Offence, Source, judge

GOOD = '"""What it is for."""\n'


@pytest.fixture(autouse=True)
def empty_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of this project's own exceptions are no part of the rules."""
    monkeypatch.setattr(tidy, "BROAD_EXCEPT_FILES", {"gateway/runtime/loop.py": "it must live"})
    monkeypatch.setattr(tidy, "LIVING_MODULES", {})


def offences(path: str, text: str) -> list[Offence]:
    """What is found in one file, but for the rules about the whole tree."""
    return [o for o in judge([Source(path, text)]) if o.rule not in {"dead-module", "stale"}]


def rules(path: str, text: str) -> list[str]:
    return [offence.rule for offence in offences(path, text)]


def function(body_lines: int) -> str:
    return GOOD + "def f() -> None:\n" + "    x = 1\n" * body_lines


def test_an_offence_says_file_line_rule_and_what_to_do() -> None:
    (offence,) = offences("gateway/a.py", GOOD + "try:\n    x = 1\nexcept Exception:\n    x = 2\n")
    assert str(offence).startswith("gateway/a.py:4: broad-except: name the exceptions")


@pytest.mark.parametrize("suffix", ["py", "go", "ts", "java", "cob"])
def test_a_file_has_at_most_500_lines_in_any_language(suffix: str) -> None:
    assert rules(f"x/a.{suffix}", GOOD + "# x\n" * 499) == []
    assert rules(f"x/a.{suffix}", GOOD + "# x\n" * 500) == ["file-size"]


def test_prose_may_be_longer() -> None:
    assert rules("docs/a.md", "x\n" * 600) == []


def test_a_function_has_at_most_60_lines() -> None:
    assert rules("gateway/a.py", function(59)) == []
    assert rules("gateway/a.py", function(60)) == ["function-size"]


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("def f(a, b, *, c, d, e): ...", []),
        ("def f(a, b, c): ...", ["keyword-only"]),
        ("def f(a, b, *, c, d, e, g): ...", ["parameters"]),
        ("class C:\n    def f(self, a, b): ...", []),
        ("class C:\n    def f(self, a, b, c): ...", ["keyword-only"]),
        ("class C:\n    def __init__(self, a, b, c): ...", ["keyword-only"]),
        ("class C:\n    def __exit__(self, a, b, c): ...", []),
        ("async def app(scope, receive, send): ...", []),
        ("@app.command()\ndef f(a, b, c, d, e, g): ...", []),
        ("def f(a: Annotated[int, typer.Option()], b, c, d, e, g): ...", []),
        ("@router.get('/x')\ndef f(a, b, c): ...", []),
        ("@other(1)\ndef f(a, b, c): ...", ["keyword-only"]),
    ],
)
def test_at_most_five_parameters_and_by_keyword_after_the_second(
    signature: str, expected: list[str]
) -> None:
    assert rules("gateway/a.py", f"{GOOD}{signature}\n") == expected
    assert rules("gateway/tests/test_a.py", f"{GOOD}{signature}\n") == []


@pytest.mark.parametrize(
    "path",
    ["gateway/utils.py", "gateway/common/a.py", "trainer/loop_v2.py", "gateway/new_driver.py"],
)
def test_a_module_is_named_by_its_subject(path: str) -> None:
    assert rules(path, GOOD) == ["module-name"]


def test_a_module_is_not_named_like_a_library_it_uses() -> None:
    assert rules("gateway/stores/sqlite3.py", GOOD + "import sqlite3\n") == ["module-name"]
    assert rules("gateway/stores/sqlite3.py", GOOD + "import gateway.x\n") == []


def test_claiming_words_are_banned_in_code_and_prose() -> None:
    claim = "a " + "rob" + "ust thing"
    assert rules("docs/a.md", f"{claim}\n") == ["word"]
    assert rules("gateway/a.py", f'"""{claim.title()}."""\n') == ["word"]
    assert rules("gateway/a.py", '"""Robustness is a noun."""\n# a hack\n') == []


def test_each_module_begins_with_a_docstring_but_an_empty_one() -> None:
    assert rules("gateway/a.py", "x = 1\n") == ["docstring"]
    assert rules("gateway/tests/__init__.py", "") == []


@pytest.mark.parametrize(
    "line", ["import unittest.mock", "from unittest import mock", "from unittest.mock import Mock"]
)
def test_mocks_are_banned_everywhere(line: str) -> None:
    assert set(rules("gateway/tests/test_a.py", f"{GOOD}{line}\n")) == {"mock"}


@pytest.mark.parametrize("lines", ["import time\ntime.sleep(1)", "from time import sleep"])
def test_a_test_does_not_sleep(lines: str) -> None:
    assert rules("gateway/tests/test_a.py", f"{GOOD}{lines}\n") == ["sleep"]
    assert rules("gateway/a.py", f"{GOOD}{lines}\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "from os.path import join",
        "import asyncio",
        "import time as t",
        "from gateway import stores",
        "from gateway.telemetry import logs",
        "from .. import stores",
        "print(1)",
        "open('x')",
        "import unknown_library",
    ],
)
def test_pure_folders_reach_nothing_outside(line: str) -> None:
    assert set(rules("gateway/engine/a.py", f"{GOOD}{line}\n")) == {"purity"}
    assert rules("gateway/engine/tests/test_a.py", f"{GOOD}{line}\n") == []
    assert rules("gateway/runtime/a.py", f"{GOOD}{line}\n") == []


def test_what_one_pure_folder_may_import_the_others_may_not() -> None:
    text = f"{GOOD}import numpy as np\n"
    assert rules("gateway/insight/a.py", text) == []
    assert set(rules("gateway/engine/a.py", text)) == {"purity"}
    assert set(rules("gateway/insight/a.py", f"{GOOD}import random\n")) == {"purity"}


@pytest.mark.parametrize(
    "line",
    [
        "import msgspec",
        "from collections.abc import Mapping",
        "from acp_spec.model.ids import call_id",
        "from acp_spec import model",
        "from . import states",
        "from .states import State",
        "door.open()",
    ],
)
def test_pure_folders_may_use_what_is_pure(line: str) -> None:
    assert rules("gateway/engine/a.py", f"{GOOD}{line}\n") == []


def test_open_tasks_name_their_issue() -> None:
    word = "TO" + "DO"
    assert rules("x/a.go", f"// {word}: later\n") == ["open-task"]
    assert rules("x/a.go", f"// {word}(#12): later\n") == []


@pytest.mark.parametrize(
    "clause", ["except:", "except Exception:", "except (OSError, BaseException) as e:"]
)
def test_only_listed_loops_catch_everything(clause: str) -> None:
    text = f"{GOOD}try:\n    x = 1\n{clause}\n    x = 2\n"
    assert rules("gateway/a.py", text) == ["broad-except"]
    assert rules("gateway/runtime/loop.py", text) == []


def test_cleaning_up_and_raising_again_is_no_catching() -> None:
    text = f"{GOOD}try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise\n"
    assert rules("gateway/a.py", text) == []


def test_narrow_excepts_are_fine() -> None:
    assert (
        rules("gateway/a.py", f"{GOOD}try:\n    x = 1\nexcept (OSError, ValueError):\n    x = 2\n")
        == []
    )


@pytest.mark.parametrize(
    "line", ["see /wo" + "rk/x", "registry" + ".npmjs.org", "https://files.python" + "hosted.org"]
)
def test_nothing_names_the_machine_or_a_registry(line: str) -> None:
    for path in ("docs/a.md", "x/package-lock.json", "Makefile"):
        assert rules(path, f"{line}\n") == ["place"]


def test_generated_files_are_judged_by_nobody() -> None:
    for path in (
        "acp_spec/proto/v1/acp_pb2.py",
        "acp_spec/proto/v1/acp_pb2.pyi",
        "x/_generated_y.py",
    ):
        assert rules(path, "x = 1\n" * 600) == []


def test_a_module_that_only_its_test_imports_is_dead() -> None:
    tree = [
        Source("gateway/alive.py", GOOD),
        Source("gateway/dead.py", GOOD),
        Source("gateway/started.py", GOOD),
        Source("gateway/__main__.py", GOOD + "from gateway.alive import x\n"),
        Source("gateway/tests/test_dead.py", GOOD + "from gateway.dead import x\n"),
        Source("pyproject.toml", 'acp = "gateway.started:main"\n'),
        Source("docs/a.md", "gateway.dead\n"),
    ]
    assert [o.path for o in tidy.dead_modules(tree)] == ["gateway/dead.py"]


def test_an_exception_that_nobody_needs_any_more_is_itself_an_offence() -> None:
    (offence,) = tidy.stale_exceptions([Source("gateway/runtime/loop.py", GOOD)])
    assert "take it off" in offence.advice


def test_it_judges_files_not_yet_committed_and_skips_what_is_no_text(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "new.py").write_text("x = 1\n")
    (tmp_path / "image.png").write_bytes(b"\xff\xfe\x00")
    assert [source.path for source in tidy.read_tree(tmp_path)] == ["new.py"]
