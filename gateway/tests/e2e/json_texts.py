"""JSON as text: strategies that write every token in its many spellings, and ways to compare it.

Two texts are the same for the protocol when they differ only in white space outside strings.
"""

import json

from hypothesis import strategies as st

NUMBERS = (
    "9007199254740993", "0.10", "123456789012345678.90", "-0", "-0.0", "1E400", "1e-400", "1.0",
    "18446744073709551616", "-9223372036854775809", "0.1000000000000000055511151231257827", "2e+03",
)  # fmt: skip
CHARACTERS = (
    "a", "Z", " ", "é", "漢", "😀", r"\u00e9", r"\u0041", r"\ud83d\ude00", r"\/", "/", r"\"",
    r"\\", r"\n", r"\u000a", r"\b", r"\u0000", "\u2028", "\u007f", "{", "}", "[", ",", ":", "$",
)  # fmt: skip
SPACES = ("", "", "", " ", "\n", "\t ", "\r\n")

numbers = st.sampled_from(NUMBERS) | st.from_regex(
    r"\A-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?\Z"
)
strings = st.lists(st.sampled_from(CHARACTERS), max_size=6).map(lambda c: f'"{"".join(c)}"')
scalars = numbers | strings | st.sampled_from(("null", "true", "false"))
spaces = st.sampled_from(SPACES)


@st.composite
def _arrays(draw: st.DrawFn, children: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(children, max_size=4))
    return "[" + ",".join(draw(spaces) + item + draw(spaces) for item in items) + "]"


@st.composite
def _objects(draw: st.DrawFn, children: st.SearchStrategy[str]) -> str:
    keys = draw(st.lists(strings, max_size=4, unique_by=json.loads))
    members = [f"{draw(spaces)}{key}{draw(spaces)}:{draw(spaces)}{draw(children)}" for key in keys]
    return "{" + ",".join(members) + draw(spaces) + "}"


def values(max_leaves: int = 12) -> st.SearchStrategy[str]:
    """Any JSON value as text, in any spelling that the protocol lets pass."""
    return st.recursive(
        scalars, lambda inner: _arrays(inner) | _objects(inner), max_leaves=max_leaves
    )


def compact(text: str) -> str:
    """The text without white space outside strings."""
    kept: list[str] = []
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character in " \t\r\n":
            continue
        else:
            quoted = character == '"'
        kept.append(character)
    return "".join(kept)
