"""CEL expressions: compiled once, run within bounds on the values they name, written canonically.

Deterministic for the same bytes: no clock, no chance, maps are written and run over in the order of
their keys. Integers of 64 bits are CEL int and other numbers double; a result that holds a number
which the source wrote more precisely than a double can is refused, never rounded in silence.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

import cel
import jiter

from acp_spec.codec.json_text import CanonicalError, Plain, canonical
from gateway.expressions.bounds import (
    MAX_MACRO_ELEMENTS,
    MAX_OUTPUT_BYTES,
    Extent,
    check_cost,
    check_named,
    check_pattern,
    check_reading,
    extent_of,
)
from gateway.expressions.fault import ExpressionError, violation
from gateway.expressions.parsing import parse
from gateway.expressions.path import Finder, Path, Scope
from gateway.expressions.precision import (
    Inexact,
    PrecisionRules,
    check_precision,
    decode_careful,
    needs_care,
    precision_rules,
)
from gateway.expressions.printing import SIZE_FUNCTION, Printed, printed
from gateway.expressions.projection import element_fields
from gateway.expressions.syntax import Call, Literal, Node, Ref, Use, children

_NO_SIZE: Final = "'size' takes a string, a list or an object"
_UNDEFINED: Final = re.compile(r"Undefined variable or function: '(v[0-9]+)'")
_CALLED: Final = re.compile(r"(?:Undefined variable or function:|Function) '(\w+)'")

Variables: TypeAlias = "dict[str, Plain]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A compiled CEL expression; `paths` are all it reads."""

    tree: Node
    shape: Printed
    program: cel.Program
    paths: tuple[Path, ...]
    precision: PrecisionRules
    element_fields: Mapping[Ref, frozenset[str]]

    def evaluate(self, scope: Scope) -> bytes:
        """The canonical JSON text of its value; raises ExpressionError (CONTRACT_VIOLATION)."""
        variables, inexact = self._decoded(scope)
        result = self._run(variables)
        check_precision(result, self.precision, inexact=inexact)
        try:
            text = canonical(result)
        except CanonicalError as error:
            raise violation(f"the result cannot be written as JSON: {error}") from None
        if len(text) > MAX_OUTPUT_BYTES:
            raise violation(f"the result has {len(text)} bytes, at most {MAX_OUTPUT_BYTES}")
        return text

    def _decoded(self, scope: Scope) -> tuple[Variables, Inexact]:
        """Values of all variables that exist, and the doubles among them that lost digits."""
        finder = Finder(scope)
        texts, extents = self._measured(finder)
        check_reading(self.tree, extents.values())
        variables: Variables = {}
        inexact = Inexact()
        for name, data in texts.items():
            ref = self.shape.values[name]
            value: Plain
            if needs_care(data):
                value = decode_careful(data, inexact, path=ref.path)
            else:
                value = jiter.from_json(data, cache_mode="none")
            if isinstance(value, list | dict):
                extents[ref] = extents[ref]._replace(elements=len(value))
            if ref.use is not Use.SIZE:
                variables[name] = self._needed(value, ref)
            elif _is_sized(value):
                variables[name] = len(value)
        for name, path in self.shape.presences.items():
            variables[name] = finder.find(path) is not None
        check_cost(self.tree, extents)
        return variables, inexact

    def _measured(self, finder: Finder) -> tuple[dict[str, bytes], dict[Ref, Extent]]:
        """The texts of all values that exist, by variable, and how large they are."""
        texts: dict[str, bytes] = {}
        extents: dict[Ref, Extent] = {}
        total_bytes = 0
        for name, ref in self.shape.values.items():
            data = finder.find(ref.path)
            if data is not None:
                total_bytes += len(data)
                check_named(ref, data, total_bytes=total_bytes)
                texts[name] = data
                extents[ref] = extent_of(data, careful=needs_care(data))
        return texts, extents

    def _needed(self, value: Plain, ref: Ref) -> Plain:
        """What the library gets to see: handing a value over is what costs most."""
        if ref.use is not Use.ELEMENTS:
            return value
        if isinstance(value, Mapping):
            return sorted(value)
        fields = self.element_fields.get(ref)
        if fields is None or not isinstance(value, list) or len(value) > MAX_MACRO_ELEMENTS:
            return value
        return [
            {key: item[key] for key in fields if key in item} if isinstance(item, dict) else item
            for item in value
        ]

    def _run(self, variables: Variables) -> Plain:
        sizes = _Sizes()
        context = cel.Context(variables)
        if self.shape.counts_size:
            context.add_function(SIZE_FUNCTION, sizes.of)
        try:
            result: Plain = self.program.execute(context)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise self._explained(error) from None
        if sizes.misused:
            raise violation(_NO_SIZE, self.tree.column)
        return result

    def _explained(self, error: Exception) -> ExpressionError:
        """What a failed evaluation means, in the words of the expression."""
        said = str(error)
        undefined = _UNDEFINED.search(said)
        if undefined is not None:
            ref = self.shape.values[undefined[1]]
            if ref.use is Use.SIZE:
                return violation(f"{_NO_SIZE}; {ref.path} is none", ref.column)
            return violation(f"{ref.path} does not exist; guard it with has()", ref.column)
        column = self.tree.column
        match error:
            case KeyError():
                return violation(f"there is no field {said}", column)
            case IndexError():
                return violation(said, column)
            case ZeroDivisionError():
                return violation("division by zero", column)
            case OverflowError():
                return violation("a number does not fit 64 bits", column)
            case _:
                pass
        called = _CALLED.search(said)
        if called is not None:
            return violation(f"'{called[1]}' cannot be applied to this value", column)
        return violation(
            "an operator does not fit the types of its values; "
            "convert with int(), double() or string(), guard null with has()",
            column,
        )


@dataclass(slots=True)
class _Sizes:
    """`size` by CEL's rule: characters of a string, elements of a list, members of an object."""

    misused: bool = False

    def of(self, value: object) -> int:
        if _is_sized(value):
            return len(value)
        # An exception here would be printed by the library; the flag is read after the run.
        self.misused = True
        return 0


def _is_sized(value: object) -> TypeGuard[str | list[Plain] | dict[str, Plain]]:
    return isinstance(value, str | list | dict)


def compile_computed(text: str) -> Computed:
    """Compile CEL; raises ExpressionError with the column of what is refused."""
    tree = parse(text)
    shape = printed(tree)
    program = _compiled(shape.text, tree.column)
    for pattern in _patterns(tree):
        check_pattern(pattern)
        _check_pattern_compiles(pattern)
    read = [*(ref.path for ref in shape.values.values()), *shape.presences.values()]
    return Computed(
        tree=tree,
        shape=shape,
        program=program,
        paths=tuple(dict.fromkeys(read)),
        precision=precision_rules(tree),
        element_fields=element_fields(tree),
    )


def _compiled(text: str, column: int) -> cel.Program:
    try:
        return cel.compile(text)
    except ValueError as error:
        # The library's column counts in the printed text, so only its reason is passed on.
        reason = str(error).partition("ERROR: ")[2].partition(": ")[2].partition("\n")[0]
        raise ExpressionError(f"this is not an expression: {reason or error}", column) from None


def _check_pattern_compiles(pattern: Literal) -> None:
    try:
        cel.compile(f"''.matches({pattern.text})").execute({})
    except RuntimeError as error:
        reason = str(error).partition(". Check")[0].strip().splitlines()[-1].strip()
        raise ExpressionError(f"not a valid pattern: {reason}", pattern.column) from None


def _patterns(node: Node) -> list[Literal]:
    """The patterns of all `matches` in a tree."""
    found = [pattern for child in children(node) for pattern in _patterns(child)]
    if isinstance(node, Call) and node.function == "matches":
        pattern = node.arguments[1]
        assert isinstance(pattern, Literal)
        found.append(pattern)
    return found
