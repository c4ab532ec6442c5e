"""The contract's section `sandbox`: what must hold the programs that serve actions (R11).

    sandbox:
      python.*: {guards: [MEMORY, NETWORK, READ_ONLY_FILES], max_memory_bytes: 536870912}
      text.count: {}                # the usual guards, any size

The card of the component that is about to be called must offer each guard, and a limit no larger
than the one stated; else the call is refused and nothing is sent. Every line that fits an action
holds for it. Siblings of one shape: a frozen value and `read(reader, found)`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.sandbox import USUAL, Guard, Sandbox, lacking
from gateway.expressions.field_reader import Field, FieldReader

KEYS: Final = ("guards", "max_memory_bytes", "max_cpu_ms", "max_wall_ms", "max_processes")
MOST: Final = 1 << 50
LINES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One line. `action`: a name, or with `*` the beginning of names; 0 = any size."""

    action: str
    guards: tuple[Guard, ...] = USUAL
    memory_bytes: int = 0
    cpu_ms: int = 0
    wall_ms: int = 0
    processes: int = 0

    def is_about(self, action: str) -> bool:
        if self.action.endswith("*"):
            return action.startswith(self.action[:-1])
        return action == self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDemands:
    """The whole section."""

    lines: tuple[Demand, ...] = ()


def read(reader: FieldReader, found: Field) -> SandboxDemands:
    """The section; what is wrong in it is noted in `reader`."""
    fields = reader.fields(found.value, found.path, known=None)
    if len(fields) > LINES_MAX:
        reader.fault(found, f"at most {LINES_MAX} lines can be stated")
    lines = [_line(reader, name, found=one) for name, one in list(fields.items())[:LINES_MAX]]
    return SandboxDemands(lines=tuple(lines))


def _line(reader: FieldReader, name: str, *, found: Field) -> Demand:
    if "*" in name[:-1]:
        reader.fault(found, f"{name!r} is not an action's name, or the beginning of names and a *")
    fields = reader.fields(found.value, found.path, known=KEYS)

    def most(key: str) -> int:
        return reader.integer(fields.get(key), 0, least=1, most=MOST)

    return Demand(
        action=name,
        guards=_guards(reader, fields.get("guards")),
        memory_bytes=most("max_memory_bytes"),
        cpu_ms=most("max_cpu_ms"),
        wall_ms=most("max_wall_ms"),
        processes=most("max_processes"),
    )


def _guards(reader: FieldReader, found: Field | None) -> tuple[Guard, ...]:
    if found is None:
        return USUAL
    items = reader.items(found.value, found.path)
    places = (Field(f"{found.path}[{i}]", tree.place, tree) for i, tree in enumerate(items))
    read_ones = [reader.choice(place, Guard) for place in places]
    return tuple(dict.fromkeys(guard for guard in read_ones if guard is not None))


def refusal(demands: SandboxDemands | None, card: Card, *, action: str) -> AcpError | None:
    """Why a call of `action` must not go to the component with this card; None: it may."""
    if demands is None or not action:
        return None
    lines = [line for line in demands.lines if line.is_about(action)]
    if not lines:
        return None
    problems = list(dict.fromkeys(_problems(lines, card.action(action))))
    if not problems:
        return None
    message = (
        f"the contract demands a sandbox for {action!r} that {card.name}@{card.version} does not"
        f" offer: {'; '.join(problems)}"
    )
    return error(
        Reason.SANDBOX_LIMIT, message, side_effect=SideEffect.NONE, boundary=Boundary.GATEWAY
    )


def _problems(lines: list[Demand], action: Action | None) -> Iterator[str]:
    offered = (action.sandbox if action is not None else None) or Sandbox()
    for line in lines:
        missing = lacking(line.guards, offered)
        if missing:
            yield f"no {', '.join(guard.value for guard in missing)}"
        for name in ("memory_bytes", "cpu_ms", "wall_ms", "processes"):
            wanted, given = getattr(line, name), getattr(offered, name)
            if wanted and not 0 < given <= wanted:
                yield f"{name} {given or 'without a limit'}, at most {wanted} is allowed"
