"""Every command of every group looks and ends alike: help, `--json`, tokens, exit codes.

The commands are found, not listed: a new one is held to the same rules from its first day.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from acp_spec.sdk.cli import EXIT_MEANING, Exit, add_commands
from gateway.transports.tests.in_memory import WORKFLOW

ROOT = Path(__file__).parents[3]
HELP_SENTENCE_MAX = 200

# What a command needs beyond its required parameters, or where a filled-in word would be no use.
SPECIAL: dict[str, list[str]] = {
    "governance set": ["breaker.open_ms=2000"],
    "insight contribution": ["--baseline", "until=2026-01-01", "--new", "since=2026-01-01"],
    "insight drift": ["--baseline", "until=2026-01-01", "--new", "since=2026-01-01"],
    "lineage": ["x"],
    "proposals open": ["--kind", "RETIREMENT", "--subject", "component:fees@1", "--title", "t"],
    "proposals evidence": ["p", "--kind", "CONFORMANCE"],
    "rollout start": ["--component", "fees@2.0.0"],
    "sessions delete": ["s", "--yes"],
    "tokens create": ["--scope", "submit"],
}
# These ask nobody before they have read what they were given; a word in its place is wrong use.
READS_FIRST = {"replay-traffic", "rewards give"}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words, as a person types them."""
    root = typer.Typer()
    add_commands(root)

    def walk(command: Any, words: list[str]) -> Iterator[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if below is None:
            yield " ".join(words), command
        else:
            for name, one in below.items():
                yield from walk(one, [*words, name])

    return walk(get_command(root), [])


EVERY = dict(commands())
OF_A_GATEWAY = sorted(
    name
    for name, command in EVERY.items()
    if any("--gateway" in parameter.opts for parameter in command.params)
)


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_its_help_is_a_sentence_and_every_parameter_has_a_word(name: str) -> None:
    command = EVERY[name]
    first = " ".join((command.help or "").split("\n\n")[0].split())
    assert first.endswith("."), f"`acp {name}` does not say what it does in a sentence"
    assert len(first) <= HELP_SENTENCE_MAX
    silent = [one.name for one in command.params if not getattr(one, "help", None)]
    assert not silent, f"`acp {name}` says nothing of {silent}"


@pytest.mark.parametrize("name", sorted(EVERY))
def test_it_prints_json_for_programs_and_names_options_alike(name: str) -> None:
    options = options_of(EVERY[name])
    assert "--json" in options
    assert all(re.fullmatch(r"-h|--[a-z][a-z-]*", one) for one in options if one.startswith("-"))
    if options & {"--gateway", "--target"} and name != "proposals evidence":
        assert "--token" in options


def given(name: str, file: Path) -> list[str]:
    """Something for each required parameter."""
    if name in SPECIAL:
        return SPECIAL[name]
    words: list[str] = []
    for one in EVERY[name].params:
        if not one.required:
            continue
        word = str(file) if one.name == "file" else "x"
        words += [word] if one.param_type_name == "argument" else [one.opts[0], word]
    return words


@pytest.mark.parametrize("name", [one for one in OF_A_GATEWAY if one not in READS_FIRST])
def test_a_gateway_that_nobody_runs_is_the_same_failure_for_every_command(
    name: str, root: typer.Typer, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    file = tmp_path / "hotline.yaml"
    file.write_bytes(WORKFLOW)
    environ = {"ACP_GATEWAY": f"http://127.0.0.1:{free_port()}", "ACP_TOKEN": ""}
    arguments = [*name.split(), *given(name, file), "--json"]
    ran = CliRunner().invoke(root, arguments, env=environ, input="null\n")
    assert ran.exit_code == Exit.UNAVAILABLE, (ran.stdout, ran.stderr)
    assert ran.stdout == ""
    told = json.loads(ran.stderr.splitlines()[-1])["error"]
    assert told["code"] == "UNAVAILABLE"
    assert told["message"]


def test_every_exit_code_has_a_meaning_and_none_is_a_bare_number() -> None:
    assert set(EXIT_MEANING) == set(Exit)
    for file in (ROOT / "gateway" / "cli").rglob("*.py"):
        if "tests" not in file.parts:
            assert not re.search(r"typer\.Exit\(\s*\d", file.read_text()), file
