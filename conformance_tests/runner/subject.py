"""What the component under test declares: roles, actions, examples; and what may be sent to it.

Only examples marked `safe`, the owner's fixtures and the well-known `acp.test.*` actions are sent,
unless side effects were allowed. What is declared but cannot be sent is `Untestable`, which is a
failure with its own reason and never a silent gap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

import jsonschema_rs
from msgspec import UNSET

from conformance_tests.messages.tree import Text, Tree, Value, as_text, parse
from conformance_tests.runner.fixtures import Fixtures

ROLE_OF_CALL: Final = {
    "plan": "PLANNER",
    "execute": "EXECUTOR",
    "observe": "OBSERVER",
    "reflect": "REFLECTOR",
}
ECHO: Final = "acp.test.echo"
LARGE_BYTES: Final = 320_000
"""A request that needs more than one frame of attach, with room for its context."""
# One of each JSON type, and a few that come close to what actions take.
CANDIDATES: Final[tuple[Value, ...]] = (
    None,
    [],
    {},
    "x",
    -1,
    True,
    {"ms": -1},
    {"key": 7},
    {"reason": ""},
    {"unknown_field_": {}},
)


class NotDeclared(Exception):
    """The component does not offer what the case is about."""


class Untestable(Exception):
    """It is declared, but nothing may be sent to see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    action: str
    arguments: Text
    output: Text | None

    def tree(self) -> Tree:
        said: Tree = {"action": self.action, "arguments": self.arguments}
        return said if self.output is None else {**said, "output": self.output}


class Subject:
    """One component, by the cards it gave and what its owner allows."""

    def __init__(
        self, cards: dict[str, Tree], fixtures: Fixtures, *, allow_side_effects: bool
    ) -> None:
        self.cards = cards
        self.card = next(iter(cards.values()), {})
        self.fixtures = fixtures
        self.allow_side_effects = allow_side_effects
        listed = self.card.get("actions")
        actions = [a for a in listed if isinstance(a, dict)] if isinstance(listed, list) else []
        self.actions: dict[str, Tree] = {str(action.get("name")): action for action in actions}
        roles = self.card.get("roles")
        self.roles = [str(role) for role in roles] if isinstance(roles, list) else []

    @property
    def max_request_bytes(self) -> int:
        """As the card states it; 0 = not stated."""
        limits = self.card.get("limits")
        stated = limits.get("max_request_bytes") if isinstance(limits, dict) else None
        return int(stated) if isinstance(stated, int | float) else 0

    @property
    def max_concurrency(self) -> int:
        """As the card states it; 0 = not stated."""
        limits = self.card.get("limits")
        stated = limits.get("max_concurrency") if isinstance(limits, dict) else None
        return int(stated) if isinstance(stated, int | float) else 0

    def offers(self, do: str) -> bool:
        return ROLE_OF_CALL[do] in self.roles

    def need(self, what: str) -> None:
        """Raises NotDeclared unless the component has it: a role, an action or a statement."""
        if what in ROLE_OF_CALL:
            if not self.offers(what):
                raise NotDeclared(f"the card has no role {ROLE_OF_CALL[what]}")
        elif what in _STATEMENTS:
            if not _STATEMENTS[what](self):
                raise NotDeclared(_STATEMENT_MISSING[what])
        elif what not in self.actions:
            raise NotDeclared(f"the card does not offer {what}")

    def safe_call(self) -> Example:
        """Something the executor may always be asked. Raises Untestable."""
        if ECHO in self.actions:
            return Example(action=ECHO, arguments=Text(b'{"conformance":true}'), output=None)
        found = next(self.examples(), None)
        if found is None:
            raise Untestable(
                f"no action has an example marked safe and {ECHO} is not offered: mark one, give "
                "`execute` in --fixtures, or allow --allow-side-effects"
            )
        return found

    def examples(self) -> Iterator[Example]:
        """Every pair of arguments and output that may be sent; fixtures first."""
        for stated in self.fixtures.execute:
            output = None if stated.output is UNSET else as_text(cast("Value", stated.output))
            arguments = as_text(cast("Value", stated.arguments))
            yield Example(action=stated.action, arguments=arguments, output=output)
        for name, action in self.actions.items():
            listed = action.get("examples")
            for item in listed if isinstance(listed, list) else []:
                if isinstance(item, dict) and (item.get("safe") or self.allow_side_effects):
                    yield _example(name, item)

    # ---- what a case may be repeated over ---------------------------------------------------

    def source(self, name: str) -> list[tuple[str, Value]]:
        """Label and value of each. Raises NotDeclared, Untestable; KeyError for a wrong name."""
        return list(_SOURCES[name](self))

    def calls(self) -> Iterator[tuple[str, Value]]:
        """The four calls, those that are offered."""
        yield from ((do, do) for do in ROLE_OF_CALL if self.offers(do))

    def safe_examples(self) -> Iterator[tuple[str, Value]]:
        self.need("execute")
        found = list(self.examples())
        if not found:
            self.safe_call()
            raise NotDeclared("no action has an example marked safe")
        counted: dict[str, int] = {}
        for example in found:
            counted[example.action] = counted.get(example.action, 0) + 1
            yield f"{example.action}#{counted[example.action]}", example.tree()

    def test_actions(self) -> Iterator[tuple[str, Value]]:
        """The well-known actions that are offered."""
        found = [name for name in self.actions if name.startswith("acp.test.")]
        if not found:
            raise NotDeclared("no acp.test action is offered")
        yield from ((name, name) for name in found)

    def wrong_arguments(self) -> Iterator[tuple[str, Value]]:
        """For each action with an input_schema, arguments that it refuses."""
        found = False
        for name, action in self.actions.items():
            wrong = _violating(action.get("input_schema"))
            if wrong is not None:
                found = True
                yield name, {"action": name, "arguments": wrong}
        if not found:
            raise NotDeclared("no action has an input_schema that refuses anything")


def _example(action: str, item: Tree) -> Example:
    arguments, output = as_text(item.get("arguments", Text(b"null"))), item.get("output")
    return Example(
        action=action, arguments=arguments, output=output if isinstance(output, Text) else None
    )


def _violating(schema: Value) -> Text | None:
    if not isinstance(schema, Text):
        return None
    try:
        validator = jsonschema_rs.validator_for(schema.data.decode())
    except (ValueError, UnicodeDecodeError):
        return None
    for candidate in CANDIDATES:
        if not validator.is_valid(candidate):
            return as_text(candidate)
    return None


def compiles_offline(schema: Text) -> str | None:
    """Why this schema does not compile without fetching anything, or None."""
    try:
        parse(schema.data)
        jsonschema_rs.validator_for(schema.data.decode(), retriever=_refuse)
    except (ValueError, UnicodeDecodeError) as problem:
        return str(problem).splitlines()[0]
    return None


def _refuse(uri: str) -> dict[str, object]:
    raise ValueError(f"{uri} would have to be fetched")


_STATEMENTS: Final[dict[str, Callable[[Subject], object]]] = {
    "max_request_bytes": lambda subject: subject.max_request_bytes,
    "max_concurrency": lambda subject: subject.max_concurrency,
    "large requests": lambda subject: subject.max_request_bytes > LARGE_BYTES,
    "exposed": lambda subject: subject.fixtures.exposed,
    "both bindings": lambda subject: len(subject.cards) > 1,
}
_STATEMENT_MISSING: Final = {
    "max_request_bytes": "the card states no limits.max_request_bytes",
    "max_concurrency": "the card states no limits.max_concurrency",
    "large requests": "its requests are too small to need more than one frame of attach",
    "exposed": "it is bound to loopback only, unless the fixtures say `exposed: true`",
    "both bindings": "only one binding was given: name both with --target",
}
_SOURCES: Final[dict[str, Callable[[Subject], Iterator[tuple[str, Value]]]]] = {
    "calls": Subject.calls,
    "safe_examples": Subject.safe_examples,
    "wrong_arguments": Subject.wrong_arguments,
    "test_actions": Subject.test_actions,
}
