"""The names a case may use: what was drawn for it, its variant, and what earlier steps answered.

`$name/path` alone stands for the value there, `${name/path}` inside a text for its text. Values are
drawn by a generator seeded with the case, so that a run can be repeated.
"""

import random
import re
from collections.abc import Mapping
from typing import Final

from acp_spec.model.ids import CROCKFORD
from conformance_tests.messages.tree import NoSuchPlace, Text, Tree, Value, as_text, at

LONG: Final = "long " * 1200
HUGE: Final = "huge" * 1_075_000
"""Over 4 MiB: more than a gateway takes by default."""
_WHOLE: Final = re.compile(r"\$([a-z_][a-z_0-9]*(?:/[^\s$]*)?)")
_INSIDE: Final = re.compile(r"\$\{([a-z_][a-z_0-9]*(?:/[^\s$}]*)?)\}")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class UnknownName(LookupError):
    """A case names what no step before has given: an earlier step failed, or the case is wrong."""


class Scope:
    """The variables of one running case."""

    def __init__(self, chance: random.Random, variant: Mapping[str, Value]) -> None:
        self.chance = chance
        self._values: Tree = {
            "word": word(chance),
            "other_word": word(chance),
            "key": word(chance) + "-" + hexadecimal(chance, 12),
            "number": chance.randint(2, 999),
            "long_text": LONG,
            "huge_output": HUGE[:90_000],
            "large_text": HUGE[:300_000],
            "huge_text": HUGE,
            "unseen_id": hexadecimal(chance, 32),
            **variant,
        }

    def keep(self, name: str, value: Value) -> None:
        self._values[name] = value

    def get(self, path: str) -> Value:
        name, _, rest = path.partition("/")
        if name not in self._values:
            raise UnknownName(f"${name} is not known here")
        try:
            return at(self._values[name], rest)
        except NoSuchPlace:
            raise UnknownName(f"${path} is not there") from None

    def fill(self, value: Value) -> Value:
        """The value with every name replaced."""
        match value:
            case str():
                whole = _WHOLE.fullmatch(value)
                return self.get(whole[1]) if whole else _INSIDE.sub(self._inline, value)
            case Text(data=data):
                return Text(
                    _INSIDE.sub(self._inline, data.decode("utf-8", "surrogateescape")).encode(
                        "utf-8", "surrogateescape"
                    )
                )
            case dict():
                return {str(self.fill(key)): self.fill(item) for key, item in value.items()}
            case list():
                return [self.fill(item) for item in value]
            case _:
                return value

    def _inline(self, match: re.Match[str]) -> str:
        found = self.get(match[1])
        return found if isinstance(found, str) else as_text(found).data.decode()


def word(chance: random.Random) -> str:
    """A word nobody means."""
    return "".join(chance.choices(_LETTERS, k=8))


def hexadecimal(chance: random.Random, digits: int) -> str:
    return f"{chance.getrandbits(4 * digits):0{digits}x}"


def crockford_id(chance: random.Random) -> str:
    """A session id as a gateway could have made it."""
    return "0" + "".join(chance.choices(CROCKFORD, k=25))
