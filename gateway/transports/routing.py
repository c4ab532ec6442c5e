"""From method and path to a route: the wire's route table as a tree, one dict look-up per segment.

The table is `acp_spec.bindings.routes` plus the gateway's own pages. `{name}` takes one segment,
`{name}:verb` one that ends so. Nothing here reads a header.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

READ_METHODS: Final = frozenset({"GET", "HEAD"})


class NoRoute(Exception):
    """No route has this path (404)."""


class WrongMethod(Exception):
    """The path exists, the method does not (405)."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__(", ".join(allowed))
        self.allowed: Final = allowed


@dataclass(slots=True)
class _Node(Generic[T]):
    literals: "dict[str, _Node[T]]" = field(default_factory=dict)
    any: "_Node[T] | None" = None
    suffixed: "dict[str, _Node[T]]" = field(default_factory=dict)
    methods: dict[str, T] = field(default_factory=dict)


class Router(Generic[T]):
    """Finds what was added for a method and a path; HEAD is served by GET."""

    def __init__(self, routes: Iterable[tuple[str, str, T]]) -> None:
        self._root: _Node[T] = _Node()
        for method, template, target in routes:
            self._add(method, template, target=target)

    def find(self, method: str, segments: tuple[str, ...]) -> tuple[T, tuple[str, ...]]:
        """The target and the segments that `{...}` took, in order. Raises NoRoute, WrongMethod."""
        node = self._root
        taken: list[str] = []
        for segment in segments:
            following = node.literals.get(segment)
            if following is None:
                following, value = _parameter(node, segment)
                taken.append(value)
            node = following
        if not node.methods:
            raise NoRoute
        target = node.methods.get("GET" if method == "HEAD" else method)
        if target is None:
            raise WrongMethod(_allowed(node.methods))
        return target, tuple(taken)

    def _add(self, method: str, template: str, *, target: T) -> None:
        node = self._root
        for part in template.split("/")[1:]:
            node = _child(node, part)
        assert method not in node.methods, f"two routes for {method} {template}"
        node.methods[method] = target


def _child(node: _Node[T], part: str) -> _Node[T]:
    if not part.startswith("{"):
        return node.literals.setdefault(part, _Node())
    suffix = part.partition("}")[2]
    if suffix:
        return node.suffixed.setdefault(suffix, _Node())
    if node.any is None:
        node.any = _Node()
    return node.any


def _parameter(node: _Node[T], segment: str) -> tuple[_Node[T], str]:
    """The child that takes any segment; an empty one names nothing."""
    for suffix, child in node.suffixed.items():
        if segment.endswith(suffix) and len(segment) > len(suffix):
            return child, segment.removesuffix(suffix)
    if node.any is None or not segment:
        raise NoRoute
    return node.any, segment


def _allowed(methods: dict[str, T]) -> tuple[str, ...]:
    named = set(methods)
    return tuple(sorted(named | READ_METHODS if "GET" in named else named))
