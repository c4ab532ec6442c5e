"""Expressions as a workflow holds them: compiled once, evaluated against a scope of raw JSON.

A bare path copies source bytes. A constant is JSON text from the workflow file. Everything else is
CEL within bounds (see `computed`), written canonically.
"""

import re
from dataclasses import dataclass
from typing import Final

from gateway.expressions.computed import Computed, compile_computed
from gateway.expressions.fault import ExpressionError, violation
from gateway.expressions.path import Path, Scope

__all__ = ["Expression", "ExpressionError", "Path", "Scope", "compile_expression", "constant"]

MAX_TEXT_BYTES: Final = 2048

# Deeper than any document made by hand; each part reads the container around it.
MAX_PATH_PARTS: Final = 24

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PART: Final = re.compile(
    rf"""\.(?P<name>{_NAME})|\[(?P<index>0|[1-9][0-9]{{0,8}})\]|\[(?P<key>"[^"\\]*"|'[^'\\]*')\]"""
)
_ROOT: Final = re.compile(_NAME)
_NOT_NAMES: Final = frozenset({"true", "false", "null", "in"})


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. Exactly one of `path`, `computed` and `constant` is its meaning."""

    text: str
    path: Path | None = None
    computed: Computed | None = None
    constant: bytes = b""

    @property
    def is_path(self) -> bool:
        return self.path is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths it reads; nothing else is ever decoded."""
        if self.path is not None:
            return (self.path,)
        return self.computed.paths if self.computed is not None else ()

    @property
    def names(self) -> frozenset[str]:
        """The root names it uses."""
        return frozenset(path.root for path in self.paths)

    def evaluate(self, scope: Scope) -> bytes:
        """Its value as JSON text; raises ExpressionError (CONTRACT_VIOLATION) if there is none."""
        if self.computed is not None:
            return self.computed.evaluate(scope)
        if self.path is None:
            return self.constant
        found = self.path.find(scope)
        if found is None:
            raise violation(f"{self.path} does not exist")
        return found

    def evaluate_bool(self, scope: Scope) -> bool:
        """Its value as a condition; anything but true and false is a CONTRACT_VIOLATION."""
        value = self.evaluate(scope)
        if value not in (b"true", b"false"):
            shown = value[:40].decode("utf-8", "replace")
            raise violation(f"a condition must be true or false, not {shown}")
        return value == b"true"


def constant(value: bytes) -> Expression:
    """An expression that is this JSON text, whatever the scope."""
    return Expression(text=value.decode("utf-8"), constant=value)


def compile_expression(text: str) -> Expression:
    """Compile `text` and check every bound that can be checked without data."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ExpressionError("half of a surrogate pair", error.start + 1) from None
    if size > MAX_TEXT_BYTES:
        raise ExpressionError(
            f"an expression has at most {MAX_TEXT_BYTES} bytes, this has {size}", 1
        )
    path = bare_path(text)
    if path is not None:
        if len(path.parts) > MAX_PATH_PARTS:
            raise ExpressionError(f"a path has at most {MAX_PATH_PARTS} parts", path.column)
        return Expression(text=text, path=path)
    return Expression(text=text, computed=compile_computed(text))


def bare_path(text: str) -> Path | None:
    """The path that `text` is (`a.b[0].c`, `a["k"]`), or None if it is anything else."""
    stripped = text.strip()
    root = _ROOT.match(stripped)
    if root is None or root[0] in _NOT_NAMES:
        return None
    parts: list[str | int] = []
    end = root.end()
    while end < len(stripped):
        part = _PART.match(stripped, end)
        if part is None:
            return None
        end = part.end()
        if part["name"] is not None:
            parts.append(part["name"])
        elif part["index"] is not None:
            parts.append(int(part["index"]))
        else:
            parts.append(part["key"][1:-1])
    return Path(root[0], tuple(parts), 1 + text.index(root[0]))
