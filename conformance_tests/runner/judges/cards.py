"""Rules over the card: complete, compilable offline, the same everywhere and at all times."""

from typing import Final, cast

from acp_spec.model import semver
from conformance_tests.messages.tree import Text, Tree, Value, plain
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject, compiles_offline


def card_names_itself(seen: Exchange, subject: Subject) -> str | None:
    card = seen.answer.tree or {}
    if not card.get("name"):
        return "the card has no name"
    try:
        semver.parse(str(card.get("version", "")))
    except ValueError:
        return f"version {card.get('version')!r} is not semantic"
    return None if card.get("roles") else "the card has no role"


def card_actions_are_named(seen: Exchange, subject: Subject) -> str | None:
    card = seen.answer.tree or {}
    if "EXECUTOR" not in cast("list[Value]", card.get("roles", [])):
        raise NotSeen("the card has no role EXECUTOR")
    names = [action.get("name") for action in cast("list[Tree]", card.get("actions", []))]
    if not names or not all(names):
        return "an EXECUTOR without a named action"
    twice = {str(name) for name in names if names.count(name) > 1}
    return f"{sorted(twice)} stands twice" if twice else None


def card_states_versions(seen: Exchange, subject: Subject) -> str | None:
    stated = (seen.answer.tree or {}).get("acp_versions")
    return "acp_versions is empty" if stated == [] else None


def card_schemas_compile(seen: Exchange, subject: Subject) -> str | None:
    for action in cast("list[Tree]", (seen.answer.tree or {}).get("actions", [])):
        for key in ("input_schema", "output_schema"):
            schema = action.get(key)
            problem = compiles_offline(schema) if isinstance(schema, Text) else None
            if problem:
                return f"{key} of {action.get('name')}: {problem}"
    return None


def card_is_the_first(seen: Exchange, subject: Subject) -> str | None:
    first = subject.cards.get(seen.answer.binding, {})
    now = seen.answer.tree or {}
    if now.get("version") != first.get("version") or plain(now) == plain(first):
        return None
    changed = sorted(k for k in {*now, *first} if now.get(k) != first.get(k))
    return f"{', '.join(changed)} changed while the version stayed {now.get('version')}"


def cards_are_equal(seen: Exchange, subject: Subject) -> str | None:
    cards = [_comparable(card) for card in subject.cards.values()]
    if all(card == cards[0] for card in cards):
        return None
    changed = sorted(k for k in {*cards[0], *cards[1]} if cards[0].get(k) != cards[1].get(k))
    return f"the bindings' cards differ in {', '.join(changed)}"


def _comparable(card: Tree) -> Tree:
    """Absent and default are the same; protobuf does not write defaults."""
    found = {key: plain(value) for key, value in card.items() if value not in ("", [], {}, 0, None)}
    found.setdefault("acp_versions", ["1.0"])
    found.setdefault("kind", "TOOL")
    return {k: _without_defaults(v) for k, v in found.items()}


def _without_defaults(value: Value) -> Value:
    match value:
        case dict():
            kept = {k: _without_defaults(v) for k, v in value.items()}
            return {k: v for k, v in kept.items() if v not in ("", [], {}, 0, None, False)}
        case list():
            return [_without_defaults(item) for item in value]
        case _:
            return value


TEST_ACTIONS: Final = {
    "acp.test.echo": ("READ", "NATURAL"),
    "acp.test.sleep": ("READ", "NATURAL"),
    "acp.test.fail": ("WRITE", "NONE"),
    "acp.test.count": ("WRITE", "BY_KEY"),
    "acp.test.operation": ("WRITE", "NONE"),
}


def test_actions_as_in_spec(seen: Exchange, subject: Subject) -> str | None:
    """The names of SPEC section 4.2 are declared as they stand there."""
    for action in cast("list[Tree]", (seen.answer.tree or {}).get("actions", [])):
        name = str(action.get("name"))
        if not name.startswith("acp.test."):
            continue
        stated = (action.get("effect", "WRITE"), action.get("idempotency", "NONE"))
        if stated != TEST_ACTIONS.get(name):
            return f"{name} is declared as {stated}"
    return None
