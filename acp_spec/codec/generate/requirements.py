"""`requirements/v1.yaml` from SPEC.md: the same statements, word for word, for programs.

A statement is a list item `- **ABC-001** (component, gateway) text`; its level is the first of the
RFC 2119 words in it, its section the number of the heading above.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LEVELS: Final = ("MUST NOT", "MUST", "SHOULD NOT", "SHOULD", "MAY")

_HEADING: Final = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ")
_BEGIN: Final = re.compile(r"^- \*\*([A-Z]{3}-\d{3})\*\* \(([a-z, ]+)\) (.*)$")
_LEVEL: Final = re.compile(rf"\b({'|'.join(LEVELS)})\b")
_HEAD: Final = """\
# Generated from SPEC.md by `make gen`; the text there is the same, word for word.
version: "1.0"
requirements:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One binding statement. `section` is that of SPEC.md, such as `4.1`."""

    id: str
    level: str
    text: str
    section: str
    applies: tuple[str, ...]


def parse(spec: str) -> Iterator[Requirement]:
    """Every statement of SPEC.md, in its order."""
    section = ""
    lines = iter([*spec.splitlines(), ""])
    for line in lines:
        if heading := _HEADING.match(line):
            section = heading[1]
        if not (begin := _BEGIN.match(line)):
            continue
        yield from _statements(begin, lines, section=section)


def _statements(
    begin: re.Match[str] | None, lines: Iterator[str], *, section: str
) -> Iterator[Requirement]:
    """The statement that begins here and those that follow it without a blank line."""
    while begin:
        identifier, applies, text = begin[1], begin[2], begin[3]
        begin = None
        for line in lines:
            begin = _BEGIN.match(line)
            if begin or not line.strip():
                break
            text += " " + line.strip()
        level = _LEVEL.search(text)
        assert level, f"{identifier} says neither MUST nor SHOULD nor MAY"
        yield Requirement(
            id=identifier,
            level=level[1],
            text=text,
            section=section,
            applies=tuple(applies.split(", ")),
        )


def to_yaml(spec: str) -> str:
    """The whole file. JSON strings are YAML strings, so that quoting is never in doubt."""
    return _HEAD + "".join(
        f"  - id: {found.id}\n"
        f"    level: {found.level}\n"
        f'    section: "{found.section}"\n'
        f"    applies: [{', '.join(found.applies)}]\n"
        f"    text: {json.dumps(found.text, ensure_ascii=False)}\n"
        for found in parse(spec)
    )
