"""Every `acp ...` that a text of this repository tells people to type exists, with its options.

The texts are read, not listed: blocks of code and words between backticks, in each Markdown file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.tests.test_consistency import EVERY

ROOT = Path(__file__).parents[3]
TEXTS = sorted(
    path
    for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("[a-z]*/**/README.md"))
    if "node_modules" not in path.parts
)
GROUPS = {name.split()[0] for name in EVERY}
IN_BLOCK = re.compile(r"^ {0,8}(?:\$ )?(acp [a-z].*)$")
INLINE = re.compile(r"`(acp [a-z][^`]*)`")
ENDS = re.compile(r"\s(?:#|&|\||>|2>).*$")
"""A comment, a pipe: what follows is not the command's."""


def told(text: str) -> Iterator[str]:
    """The commands of a text, each on one line."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        block = IN_BLOCK.match(line)
        if block is not None:
            yield " ".join(ENDS.sub("", block[1]).split())
        yield from (found[1] for found in INLINE.finditer(line))


def meant(command: str) -> tuple[list[str], set[str]]:
    """The commands that `a b|c --x` may stand for, none of a group by itself, and its options."""
    words = [word.strip("[](),.;:'\"") for word in command.split()[1:]]
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    first, second = (*words, "", "")[:2]
    if first in EVERY:
        return [first], options
    below = second.split("|") if first in GROUPS and second[:1].isalpha() else []
    return [f"{first} {one}" for one in below], options


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_text_tells_to_type_can_be_typed(path: Path) -> None:
    """A page told an option for days that had another name by then."""
    for command in told(path.read_text(encoding="utf-8")):
        names, options = meant(command)
        for name in names:
            assert name in EVERY, command
            known = {opt for one in EVERY[name].params for opt in (*one.opts, *one.secondary_opts)}
            assert options <= known | {"--help"}, command


def test_commands_are_found_in_blocks_and_between_backticks_with_all_alternatives() -> None:
    block = "```\n$ acp rollout pause|resume NAME \\\n    --reason r # why\n```"
    assert list(told(f"Say `acp run x --json`, or\n{block}")) == [
        "acp run x --json",
        "acp rollout pause|resume NAME --reason r",
    ]
    found = meant("acp rollout pause|resume NAME --reason=r")
    assert found == (["rollout pause", "rollout resume"], {"--reason"})
    assert sum(len(list(told(path.read_text(encoding="utf-8")))) for path in TEXTS) > 100
