"""Exit codes are one complete table; data goes to stdout, words to stderr, JSON when asked."""

import json
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.sdk import cli
from acp_spec.sdk.cli import (
    ADVICE,
    EXIT_MEANING,
    EXIT_OF_CODE,
    Exit,
    JsonFlag,
    Output,
    add_commands,
    exit_table,
    reporting,
    wrong_use,
)

app = typer.Typer()


@app.command()
def fail(reason: str, json: JsonFlag = False) -> None:
    out = Output(json=json)
    with reporting(out):
        raise AcpFailure(error(Reason(reason), f"It went [wrong] because of {reason}."))


@app.command()
def show(json: JsonFlag = False) -> None:
    out = Output(json=json)
    out.note("Two rows follow.")
    items = [{"name": "a", "n": 1}, {"name": "[b]", "n": 2}]
    out.rows(items, columns=("name", "n"), cells=lambda item: (str(item["name"]), str(item["n"])))
    with out.progress("counting", total=2) as steps:
        steps.say("counting on")
        steps.advance()


@app.command()
def wrong() -> None:
    wrong_use(Output(), "Give a number.")


@app.command()
def interrupt() -> None:
    with reporting(Output()):
        raise KeyboardInterrupt


run = CliRunner().invoke


def test_every_code_has_an_exit_code_and_every_exit_code_a_meaning() -> None:
    assert set(EXIT_OF_CODE) == set(Code)
    assert set(EXIT_MEANING) == set(Exit)
    assert set(ADVICE) <= set(Exit)
    assert all(f"{code.value:>3}  " in exit_table() for code in Exit)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("NOT_FOUND", 3),
        ("IDEMPOTENCY_CONFLICT", 4),
        ("UNAVAILABLE", 5),
        ("UNAUTHENTICATED", 6),
        ("PERMISSION_DENIED", 6),
        ("INVALID_REQUEST", 2),
    ],
)
def test_a_failure_says_what_happened_and_what_to_do(reason: str, code: int) -> None:
    done = run(app, ["fail", reason])
    assert done.exit_code == code
    assert done.stdout == ""
    assert f"It went [wrong] because of {reason}." in done.stderr
    assert ADVICE[Exit(code)].split("`")[0] in done.stderr


def test_with_json_a_failure_is_the_error_itself() -> None:
    done = run(app, ["fail", "NOT_FOUND", "--json"])
    assert done.exit_code == 3
    assert json.loads(done.stderr)["error"]["reason"] == "NOT_FOUND"


def test_rows_are_a_table_for_people_and_lines_for_programs() -> None:
    table = run(app, ["show"])
    assert "[b]" in table.stdout
    assert "Two rows follow." in table.stderr
    lines = run(app, ["show", "--json"])
    assert [json.loads(line)["n"] for line in lines.stdout.splitlines()] == [1, 2]
    assert lines.stderr == ""


def test_wrong_input_is_the_exit_code_of_usage() -> None:
    done = run(app, ["wrong"])
    assert done.exit_code == Exit.USAGE
    assert "Give a number." in done.stderr


def test_an_interrupt_ends_with_its_own_code() -> None:
    assert run(app, ["interrupt"]).exit_code == Exit.INTERRUPTED


def test_commands_of_installed_packages_stand_below_the_root() -> None:
    root = typer.Typer()
    add_commands(root)
    help_text = run(root, ["--help"]).stdout
    assert "serve" in help_text
    assert "demo" in help_text


def test_a_group_that_cannot_be_imported_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint(name="train", value="no_such_module_here:app", group=cli.COMMANDS_GROUP)
    monkeypatch.setattr(cli, "entry_points", lambda group: [entry])
    root = typer.Typer()
    root.command("other")(lambda: None)
    add_commands(root)
    done = run(root, ["train"])
    assert done.exit_code == Exit.REFUSED
    assert "no_such_module_here" in done.stderr


# ---- what others wrote ---------------------------------------------------------------------------

FOREIGN = "[/foo] [red]:x: https://a 'b' \x1b[31m\x1b]0;title\x07 \x9b2J \u202e \udc80"
HARMLESS = (
    "[/foo] [red]:x: https://a 'b' \\u001b[31m\\u001b]0;title\\u0007 \\u009b2J \\u202e \\udc80"
)


@app.command()
def foreign(way: str) -> None:
    out = Output()
    with out.progress(FOREIGN, total=1) as steps:
        steps.say(FOREIGN)
    match way:
        case "value":
            out.value(None, text=FOREIGN)
        case "rows":
            out.rows([FOREIGN], columns=("it",), cells=lambda one: (one,), title=FOREIGN)
        case "show":
            out.show(cli.shown(FOREIGN, "red"))
        case "note":
            out.note(FOREIGN)
        case _:
            failing(out, error(Reason.INTERNAL, FOREIGN))


def failing(out: Output, failed: AcpError) -> None:
    with reporting(out):
        raise AcpFailure(failed)


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("way", ["value", "rows", "show", "note", "problem"])
def test_what_others_wrote_is_printed_as_it_is_and_never_obeyed(
    way: str, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "200")
    said = run(app, ["foreign", way])
    assert said.exit_code == (Exit.INTERNAL if way == "problem" else Exit.OK), said.exception
    assert HARMLESS in said.output
    assert not any(one in said.output for one in ("\x1b]0", "\x07", "\x9b", "\u202e", "❌"))


def test_a_newline_makes_no_second_row() -> None:
    assert cli.shown("a\nb\tc").plain == "a\\u000ab\\u0009c"
    assert cli.harmless("a\nb\tc\r") == "a\nb\tc\\u000d"
