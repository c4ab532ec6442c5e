"""How many checks a JSON Schema can make of one value, with every `$ref` followed.

A kilobyte of `anyOf` over references to `anyOf` makes millions of checks of one number; a validator
makes them all, and holds whoever asked. This counts them without making them: one sum over the
graph of subschemas for each level of nesting. It overestimates and never runs a schema.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Node: TypeAlias = dict[str, Json]

# Keywords whose subschemas look at the same value, and those that look at what it holds.
_SAME_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_ONE: Final = ("not", "if", "then", "else")
_SAME_MAPS: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_INNER_ONE: Final = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems",
    "unevaluatedItems", "contains",
)  # fmt: skip
# Keywords that go through a list of their own for each value.
_LISTS: Final = (
    "enum", "required", "properties", "patternProperties", "dependentRequired", "dependentSchemas",
    "dependencies", "type",
)  # fmt: skip
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_IDS: Final = ("$id", "id")
# A reference to something that is not in the text: a meta-schema, which validators bring along.
ELSEWHERE: Final = 200


# Steps of counting; each is about 1 us. A schema that takes more is refused: nobody wrote it.
EFFORT_MAX: Final = 400_000
Applied: TypeAlias = "Counter[int]"
"""How often each subschema, by its identity, looks at one value."""


class Endless(ValueError):
    """A schema that refers to itself without going into the value: it would never end."""


class _TooMuch(Exception):
    """Counting itself takes too long."""


def checks_of_one_value(schema: Json, *, levels: int, most: int) -> int:
    """The most checks that any value at any level can meet; stops counting beyond `most`.

    `levels`: how deep a value may nest. Raises Endless.
    """
    if not isinstance(schema, dict):
        return 1
    graph = _Graph(schema)
    try:
        return _worst(graph, Counter({id(schema): 1}), levels=levels, most=most)
    except _TooMuch:
        return most + 1


def _worst(graph: "_Graph", root: Applied, *, levels: int, most: int) -> int:
    """Level by level: what can look together at one value, and from there at its parts."""
    together = graph.with_same_value(root)
    worst, met, level = graph.checks(together), set[frozenset[tuple[int, int]]](), [together]
    for _ in range(levels):
        deeper: list[Applied] = []
        for applied in level:
            for inner in graph.inside(applied):
                worst = max(worst, graph.checks(inner))
                if worst > most:
                    return worst
                if (shape := graph.future_of(inner)) not in met:
                    met.add(shape)
                    deeper.append(inner)
        if not deeper:
            break
        level = deeper
    return worst


class _Graph:
    """The subschemas of one document by identity, and where each leads."""

    def __init__(self, schema: Node) -> None:
        self._nodes = {id(node): node for node in _objects(schema)}
        names = _Names(schema, self._nodes.values())
        self._own = {key: _own(node) for key, node in self._nodes.items()}
        self._same = {key: [id(n) for n in _same(node, names)] for key, node in self._nodes.items()}
        self._order = _ordered(self._same)
        self._anywhere = {key: list(map(id, _anywhere(n))) for key, n in self._nodes.items()}
        self._named = {
            key: [(w, id(n)) for w, n in _named(node)] for key, node in self._nodes.items()
        }
        self._effort = EFFORT_MAX

    def checks(self, applied: Applied) -> int:
        """How many checks these make."""
        return sum(count * self._own[key] for key, count in applied.items())

    def future_of(self, applied: Applied) -> frozenset[tuple[int, int]]:
        """What decides about everything further inside: those that go there, and how often."""
        return frozenset(
            item for item in applied.items() if self._anywhere[item[0]] or self._named[item[0]]
        )

    def with_same_value(self, applied: Applied) -> Applied:
        """With all that looks at the same value because these do."""
        reached: set[int] = set()
        waiting = list(applied)
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                waiting += self._same[key]
        self._effort -= len(reached)
        if self._effort < 0:
            raise _TooMuch
        total = Counter(applied)
        for key in sorted(reached, key=self._order.__getitem__):
            for target in self._same[key]:
                total[target] += total[key]
        return total

    def inside(self, applied: Applied) -> Iterator[Applied]:
        """What looks at one part of the value: at a part of each name, and of any other."""
        anywhere: Applied = Counter()
        named: dict[str, Applied] = {}
        for key, count in applied.items():
            for inner in self._anywhere[key]:
                anywhere[inner] += count
            for name, inner in self._named[key]:
                named.setdefault(name, Counter())[inner] += count
        everywhere = self.with_same_value(anywhere)
        if anywhere:
            yield everywhere
        for counts in named.values():
            yield self.with_same_value(counts) + everywhere


def _objects(schema: Node) -> Iterator[Node]:
    """Every object in the document; those that are no schema are led to by nobody."""
    waiting: list[Json] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


class _Names:
    """What a reference can mean: a pointer from a root, an anchor, an id."""

    def __init__(self, schema: Node, nodes: Iterable[Node]) -> None:
        self._roots: list[Node] = [schema]
        self._anchors: dict[str, list[Node]] = {}
        self._ids: dict[str, list[Node]] = {}
        for node in nodes:
            for word in _ANCHORS:
                if isinstance(name := node.get(word), str):
                    self._anchors.setdefault(name, []).append(node)
            for word in _IDS:
                if isinstance(name := node.get(word), str):
                    self._roots.append(node)
                    self._ids.setdefault(name.rpartition("/")[2].rstrip("#"), []).append(node)

    def meant(self, reference: str) -> list[Node]:
        """Every subschema that it could mean; usually one."""
        place, _, fragment = reference.partition("#")
        roots = self._ids.get(place.rpartition("/")[2], []) if place else self._roots
        if not fragment:
            return roots[:1] if not place else roots
        if not fragment.startswith("/"):
            return self._anchors.get(fragment, [])
        found = [_at(root, fragment) for root in roots]
        return [one for one in found if one is not None]


def _same(node: Node, names: _Names) -> Iterator[Node]:
    for word in _SAME_LISTS:
        yield from _schemas(node.get(word))
    for word in _SAME_ONE:
        yield from _schemas([node.get(word)])
    for word in _SAME_MAPS:
        held = node.get(word)
        yield from _schemas(list(held.values()) if isinstance(held, dict) else None)
    for word in _REFERENCES:
        reference = node.get(word)
        if isinstance(reference, str):
            yield from names.meant(reference)


def _anywhere(node: Node) -> Iterator[Node]:
    for word in _INNER_ONE:
        held = node.get(word)
        yield from _schemas(held if isinstance(held, list) else [held])
    patterns = node.get("patternProperties")
    if isinstance(patterns, dict):
        yield from _schemas(list(patterns.values()))


def _named(node: Node) -> Iterator[tuple[str, Node]]:
    properties = node.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            if isinstance(inner, dict):
                yield name, inner
    for index, inner in enumerate(_schemas(node.get("prefixItems"))):
        yield f"/{index}", inner


def _schemas(held: Json) -> Iterator[Node]:
    if isinstance(held, list):
        for one in held:
            if isinstance(one, dict):
                yield one


def _own(node: Node) -> int:
    """What the subschema does itself: one check, and one for each thing that it lists."""
    listed = (held for word in _LISTS if isinstance(held := node.get(word), list | dict))
    references = (node.get(word) for word in _REFERENCES)
    elsewhere = any(isinstance(one, str) and "://" in one for one in references)
    return 1 + sum(map(len, listed)) + (ELSEWHERE if elsewhere else 0)


def _at(root: Json, pointer: str) -> Node | None:
    """The subschema at a JSON Pointer, per cent signs and tildes read."""
    current = root
    for part in pointer.split("/")[1:]:
        name = part.replace("%25", "%").replace("~1", "/").replace("~0", "~")
        if isinstance(current, dict):
            current = current.get(name)
        elif isinstance(current, list) and name.isdecimal() and int(name) < len(current):
            current = current[int(name)]
        else:
            return None
    return current if isinstance(current, dict) else None


def _ordered(same: Mapping[int, list[int]]) -> dict[int, int]:
    """A place for each subschema before all that it leads to; Endless where there is none."""
    done: list[int] = []
    finished: dict[int, bool] = {}
    for start in same:
        stack = [] if start in finished else [(start, iter(same[start]))]
        finished.setdefault(start, False)
        while stack:
            key, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                finished[key] = True
                done.append(key)
                stack.pop()
            elif following not in finished:
                finished[following] = False
                stack.append((following, iter(same[following])))
            elif not finished[following]:
                raise Endless("a $ref leads back to itself without going into the value")
    return {key: -place for place, key in enumerate(done)}
