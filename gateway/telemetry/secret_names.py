"""Which fields are secret, by their names and by paths. Pure.

A name holds as the end of a key, however the key is written (`userPassword`, `x-api-key`), with
numbers behind it (`password2`). Short ones hold as a whole word only: `pin`, but not `spin`.
"""

import re
from collections.abc import Collection
from typing import Final

from acp_spec.codec.secret_schema import ANY_KEY, KeyPath

DEFAULT_FIELDS: Final = (
    *("password", "passwords", "passwd", "passphrase", "pwd", "password_hash"),
    *("secret", "secrets", "client_secret", "secret_key", "private_key", "access_key"),
    *("token", "authorization", "api_key", "api_keys", "apikey", "auth_key", "encryption_key"),
    *("credential", "credentials", "cookie", "cookies", "set_cookie", "session_key"),
    *("pin", "cvv", "cvc", "otp", "ssn", "card_number"),
)

SEPARATORS: Final = b"_-. "
WORD_CHARACTERS_MIN: Final = 5
"""From here on a name also holds at the end of a run of letters (`accesstoken`)."""

KEYS_REMEMBERED_MAX: Final = 10_000

LOWER: Final = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
_LAST_WORD: Final = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)(?=[0-9_\-. ]*$)", re.ASCII)
_FIELD: Final = re.compile(r"[^\s.\"\\]+(?:\.[^\s.\"\\]+)*")


class FieldNames:
    """The names and paths that somebody called secret."""

    __slots__ = (
        "_needles",
        "_paths",
        "_remembered",
        "_short",
        "_suffixes",
        "_words",
        "all",
        "names",
    )

    def __init__(self, fields: Collection[str]) -> None:
        for field in fields:
            if not _FIELD.fullmatch(field):
                raise ValueError(f"{field!r} is no field: write a name, or a path such as a.b.c")
        self.all = tuple(fields)
        self.names = tuple(field for field in fields if "." not in field)
        flat = {_flat(name) for name in self.names}
        self._suffixes = tuple(sorted(name for name in flat if len(name) >= WORD_CHARACTERS_MIN))
        self._words = frozenset(flat)
        self._paths = tuple(_path(field) for field in fields if "." in field)
        self._needles = _needles((*self._suffixes, *(path[-1] for path in self._paths)))
        short = flat.difference(self._suffixes)
        self._short = (
            re.compile(
                b"(?:" + b"|".join(re.escape(name.encode()) for name in short) + b")(?![a-z])"
            )
            if short
            else None
        )
        self._remembered: dict[str, bool] = {}

    def may_be_in(self, data: bytes) -> bool:
        """Whether any of them may be in a document or text; False is certain."""
        flat = data.translate(LOWER, SEPARATORS)
        for name in self._needles:
            if name in flat:
                return True
        return self._short is not None and self._short.search(flat) is not None

    def holds(self, keys: KeyPath) -> bool:
        """Whether the value under these keys is secret."""
        key = keys[-1]
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) >= KEYS_REMEMBERED_MAX:
                self._remembered.clear()
            known = self._remembered[key] = self._is_named(key)
        return known or (bool(self._paths) and self._is_at(keys))

    def _is_named(self, key: str) -> bool:
        flat = _flat(key)
        if flat in self._words or flat.endswith(self._suffixes):
            return True
        last = _LAST_WORD.search(key)
        return last is not None and _flat(last[0]) in self._words

    def _is_at(self, keys: KeyPath) -> bool:
        return any(
            len(path) <= len(keys) and is_path(path, tuple(map(_flat, keys[-len(path) :])))
            for path in self._paths
        )


def _needles(names: Collection[str]) -> tuple[bytes, ...]:
    """What stands in every document that has one of these names: those that hold no other."""
    wanted = {"" if name == ANY_KEY else name for name in names}
    return tuple(
        name.encode()
        for name in sorted(wanted)
        if not any(other in name for other in wanted if other != name)
    )


def is_path(path: KeyPath, keys: KeyPath) -> bool:
    """Whether a path names these keys, from the first to the last."""
    return len(path) == len(keys) and all(
        wanted in (ANY_KEY, key) for wanted, key in zip(path, keys, strict=True)
    )


def _path(field: str) -> KeyPath:
    return tuple(part if part == ANY_KEY else _flat(part) for part in field.split("."))


def _flat(name: str) -> str:
    """Small letters without separators, and without the numbers behind it."""
    encoded = name.encode("utf-8", "surrogatepass").translate(LOWER, SEPARATORS)
    return encoded.decode("utf-8", "surrogatepass").rstrip("0123456789")
