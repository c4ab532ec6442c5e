"""Which fields of its elements a macro needs: only those are handed to the CEL library.

`act.results.exists(r, r.status == 'FAILED')` needs `status` of each result and nothing of their
outputs. Where an element is used as a whole, it is handed over as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.expressions.syntax import Macro, Node, Ref, Select, Variable, children

# None: the element as a whole.
_Fields = frozenset[str] | None


def element_fields(tree: Node) -> Mapping[Ref, frozenset[str]]:
    """The fields needed of each element of a path; a path that is not there is needed whole."""
    needs = _Needs()
    needs.visit(tree)
    return {ref: fields for ref, fields in needs.of.items() if fields is not None}


@dataclass(slots=True)
class _Needs:
    of: dict[Ref, _Fields] = field(default_factory=dict)

    def visit(self, node: Node) -> None:
        if isinstance(node, Macro):
            self.macro(node, wanted=None)
            return
        for child in children(node):
            self.visit(child)

    def macro(self, node: Macro, *, wanted: _Fields) -> None:
        """`wanted`: what is needed of the elements of its result."""
        needed = _used(node.bodies)
        if node.name == "filter":
            needed = _both(needed, wanted)
        match node.receiver:
            case Ref() as ref:
                self.of[ref] = _both(self.of[ref], needed) if ref in self.of else needed
            case Macro() as inner:
                self.macro(inner, wanted=needed)
            case other:
                self.visit(other)
        for body in node.bodies:
            self.visit(body)


def _used(nodes: Sequence[Node]) -> _Fields:
    """The fields of the macro's variable that are selected below these nodes."""
    fields: _Fields = frozenset()
    for node in nodes:
        match node:
            case Variable():
                return None
            case Select(Variable(), name):
                fields = _both(fields, frozenset({name}))
            case _:
                fields = _both(fields, _used(children(node)))
    return fields


def _both(one: _Fields, other: _Fields) -> _Fields:
    return None if one is None or other is None else one | other
