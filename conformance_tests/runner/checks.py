"""The vocabulary of `expect`: one function per key, each says what is wrong or nothing.

A check compares and never sends. Keys that belong to one binding hold on the other by definition.
`judge` names rules that need more than a comparison; they stand in `judges`.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final, cast

from conformance_tests.messages.tree import NoSuchPlace, Text, Tree, Value, at, plain
from conformance_tests.runner.answers import Answer
from conformance_tests.runner.results import Finding

Check = Callable[[Answer, Value], str | None]
BODY_SHOWN = 160


def one_of(wanted: Value) -> list[Value]:
    return wanted if isinstance(wanted, list) else [wanted]


def _ok(answer: Answer, wanted: Value) -> str | None:
    if answer.ok is wanted:
        return None
    return f"expected {'success' if wanted else 'an error'}, got {answer.said}"


def _code(answer: Answer, wanted: Value) -> str | None:
    if not answer.ok and answer.code in one_of(wanted):
        return None
    return f"expected code {_listed(wanted)}, got {answer.said}"


def _reason(answer: Answer, wanted: Value) -> str | None:
    if not answer.ok and answer.reason in one_of(wanted):
        return None
    return f"expected reason {_listed(wanted)}, got {answer.said}"


def _side_effect(answer: Answer, wanted: Value) -> str | None:
    if answer.side_effect in one_of(wanted):
        return None
    stated = answer.side_effect or "none stated"
    return f"expected side effect {_listed(wanted)}, got {stated} ({answer.said})"


def _retryable(answer: Answer, wanted: Value) -> str | None:
    stated = bool((answer.error or {}).get("retryable"))
    return None if stated is wanted else f"expected retryable {wanted}, got {stated}"


def _status(answer: Answer, wanted: Value) -> str | None:
    if answer.binding != "http":
        return None
    if wanted == {"one_of_4xx": True}:
        return None if 400 <= answer.status < 500 else f"expected a 4xx, got {answer.said}"
    if isinstance(wanted, dict):
        refused = one_of(wanted["not"])
        return f"status {answer.status}" if answer.status in refused else None
    allowed = one_of(wanted)
    return (
        None
        if answer.status in allowed
        else f"expected status {_listed(wanted)}, got {answer.status}"
    )


def _grpc(answer: Answer, wanted: Value) -> str | None:
    if answer.binding != "grpc":
        return None
    if isinstance(wanted, dict):
        refused = one_of(wanted["not"])
        return f"gRPC status {answer.grpc}" if answer.grpc in refused else None
    return (
        None if answer.grpc in one_of(wanted) else f"expected {_listed(wanted)}, got {answer.grpc}"
    )


def _body(answer: Answer, wanted: Value) -> str | None:
    """`error`: an error body is there; `any`: the message can be read."""
    if wanted == "error":
        return None if answer.error else f"no error body: {shown(answer)}"
    return None if answer.tree is not None else f"not a {answer.message}: {shown(answer)}"


def _content_type(answer: Answer, wanted: Value) -> str | None:
    if answer.binding != "http":
        return None
    stated = answer.headers.get("content-type", "").partition(";")[0].strip()
    return (
        None if stated in one_of(wanted) else f"expected {_listed(wanted)}, got {stated or 'none'}"
    )


def _at(answer: Answer, wanted: Value) -> str | None:
    for path, value in cast("Tree", wanted).items():
        problem = place(answer.tree, path, wanted=value)
        if problem:
            return problem
    return None


def place(tree: Value, path: str, *, wanted: Value) -> str | None:
    """What is wrong at one place; `wanted` is a value or `{is, one_of, matches, min, max, ...}`."""
    try:
        found = at(tree, path)
    except NoSuchPlace:
        if isinstance(wanted, dict) and (wanted == {"is": "absent"} or "or_absent" in wanted):
            return None
        return f"{path} is absent"
    if isinstance(wanted, dict) and set(wanted) & set(_OPERATORS) and len(wanted) <= 2:
        for name, operand in wanted.items():
            problem = _OPERATORS[name](plain(found), operand)
            if problem:
                return f"{path}: {problem}"
        return None
    expected, got = plain(wanted), plain(found)
    return None if same(expected, got) else f"{path}: expected {expected!r}, got {got!r}"


def same(expected: Value, got: Value) -> bool:
    """Equal as JSON values; 1 and 1.0 are, true and 1 are not."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return expected == got


def _is(found: Value, operand: Value) -> str | None:
    return "is there" if operand == "absent" else None


def _in(found: Value, operand: Value) -> str | None:
    return (
        None if found in one_of(operand) else f"expected one of {_listed(operand)}, got {found!r}"
    )


def _matches(found: Value, operand: Value) -> str | None:
    return None if re.fullmatch(str(operand), str(found)) else f"{found!r} is not like {operand}"


def _min(found: Value, operand: Value) -> str | None:
    return None if _number(found) >= _number(operand) else f"{found!r} is less than {operand}"


def _max(found: Value, operand: Value) -> str | None:
    return None if _number(found) <= _number(operand) else f"{found!r} is more than {operand}"


def _length(found: Value, operand: Value) -> str | None:
    size = len(found) if isinstance(found, list | dict | str) else -1
    return None if size == operand else f"expected {operand} items, got {size}"


def _contains(found: Value, operand: Value) -> str | None:
    if isinstance(found, list):
        return None if operand in found else f"{found!r} lacks {operand!r}"
    return None if str(operand) in str(found) else f"{found!r} lacks {operand!r}"


def _without(found: Value, operand: Value) -> str | None:
    lacks = isinstance(found, list) and operand not in found
    return None if lacks else f"{found!r} holds {operand!r}"


def _differs(found: Value, operand: Value) -> str | None:
    return f"is {operand!r} too" if found == operand else None


def _counters(version: Value) -> list[int]:
    return [int(part) for part in str(version).split(".")]


def _not_below(found: Value, operand: Value) -> str | None:
    """State versions: none of the three counters is smaller."""
    pairs = zip(_counters(found), _counters(operand), strict=True)
    return f"{found} after {operand}" if any(now < then for now, then in pairs) else None


def _third_above(found: Value, operand: Value) -> str | None:
    higher = _counters(found)[2] > _counters(operand)[2]
    return None if higher else f"{found} after {operand}: the third counter did not grow"


def _later_by_500(found: Value, operand: Value) -> str | None:
    waited = _number(found) - _number(operand)
    return None if waited >= 495 else f"only {waited} ms later"


def _number(value: Value) -> Decimal:
    return Decimal(str(value)) if isinstance(value, int | float | Decimal) else Decimal("NaN")


_OPERATORS: Final[dict[str, Callable[[Value, Value], str | None]]] = {
    "is": _is,
    "one_of": _in,
    "or_absent": _in,
    "matches": _matches,
    "min": _min,
    "max": _max,
    "length": _length,
    "contains": _contains,
    "without": _without,
    "differs": _differs,
    "not_below": _not_below,
    "third_above": _third_above,
    "later_by_500": _later_by_500,
}


def _text(answer: Answer, wanted: Value) -> str | None:
    """Payloads byte for byte."""
    for path, value in cast("Tree", wanted).items():
        try:
            found = at(answer.tree, path)
        except NoSuchPlace:
            return f"{path} is absent ({answer.said})"
        expected = value.data if isinstance(value, Text) else str(value).encode()
        got = found.data if isinstance(found, Text) else repr(found).encode()
        if got != expected:
            return f"{path}: sent {expected[:BODY_SHOWN]!r}, got {got[:BODY_SHOWN]!r}"
    return None


def _holds(answer: Answer, wanted: Value) -> str | None:
    """Payloads that contain these bytes."""
    for path, value in cast("Tree", wanted).items():
        try:
            found = at(answer.tree, path)
        except NoSuchPlace:
            return f"{path} is absent ({answer.said})"
        part = value.data if isinstance(value, Text) else str(value).encode()
        if not isinstance(found, Text) or part not in found.data:
            got = found.data if isinstance(found, Text) else repr(found).encode()
            return f"{path}: {part[:BODY_SHOWN]!r} is not in {got[:BODY_SHOWN]!r}"
    return None


def _within_ms(answer: Answer, wanted: Value) -> str | None:
    late = answer.elapsed_ms > float(cast("int", wanted))
    return f"answered after {answer.elapsed_ms:.0f} ms, not within {wanted}" if late else None


def _not_before_ms(answer: Answer, wanted: Value) -> str | None:
    early = answer.elapsed_ms < float(cast("int", wanted))
    return f"answered after {answer.elapsed_ms:.0f} ms, before {wanted}" if early else None


def _after(answer: Answer, wanted: Value) -> str | None:
    """Texts that must sort after others."""
    for path, value in cast("Tree", wanted).items():
        try:
            found = str(at(answer.tree, path))
        except NoSuchPlace:
            return f"{path} is absent ({answer.said})"
        if found <= str(value):
            return f"{path}: {found} does not come after {value}"
    return None


def _mentions(answer: Answer, wanted: Value) -> str | None:
    lacking = [str(text) for text in one_of(wanted) if str(text).encode() not in answer.body]
    return f"{lacking[0]!r} is not mentioned: {shown(answer)}" if lacking else None


def _lacks(answer: Answer, wanted: Value) -> str | None:
    held = answer.body + repr(answer.headers).encode()
    found = [str(text) for text in one_of(wanted) if text and str(text).encode() in held]
    return f"the answer holds {found[0]!r}" if found else None


def _trailer_max(answer: Answer, wanted: Value) -> str | None:
    size = len(answer.trailer or b"")
    return f"acp-error-bin has {size} bytes" if size > cast("int", wanted) else None


def _any_of(answer: Answer, wanted: Value) -> str | None:
    """One of several ways to be right."""
    problems = []
    for way in cast("list[Tree]", wanted):
        found = [f for f in run_checks(way, answer, label="way") if f is not None]
        if not found:
            return None
        problems.append("; ".join(f.message for f in found))
    return " / ".join(problems)


CHECKS: Final[dict[str, Check]] = {
    "any_of": _any_of,
    "ok": _ok,
    "code": _code,
    "reason": _reason,
    "side_effect": _side_effect,
    "retryable": _retryable,
    "status": _status,
    "grpc": _grpc,
    "body": _body,
    "content_type": _content_type,
    "at": _at,
    "text": _text,
    "holds": _holds,
    "after": _after,
    "mentions": _mentions,
    "lacks": _lacks,
    "within_ms": _within_ms,
    "not_before_ms": _not_before_ms,
    "trailer_max_bytes": _trailer_max,
}


def shown(answer: Answer) -> str:
    """The beginning of what came, for a person."""
    return repr(answer.body[:BODY_SHOWN]) if answer.body else "nothing"


def _listed(wanted: Value) -> str:
    return " or ".join(str(item) for item in one_of(wanted))


def run_checks(expect: Tree, answer: Answer, *, label: str) -> Iterator[Finding | None]:
    """One entry per key: what is wrong, or None."""
    for key, wanted in expect.items():
        if key == "judge":
            continue
        problem = CHECKS[key](answer, wanted)
        yield None if problem is None else Finding(check=f"{label}.{key}", message=problem)
