"""Arguments brought into their domains when their call is made: static, planned, bound or by hand.

Here every argument passes, wherever it came from, and before the card's schema looks at it. What
was found rides on `CallCreated`; a plan keeps what its planner said.
"""

from typing import Final

import msgspec

from gateway.engine.definition import Workflow
from gateway.engine.world import World
from gateway.governance.meanings import Mapped, mapped
from gateway.governance.semantics import Origin, Side

NOTHING_MAPPED: Final = Mapped(text=b"")


def arguments_in_domain(
    workflow: Workflow | None, origin: Origin, *, arguments: bytes, world: World
) -> Mapped:
    """The arguments as they are sent, or the refusal: they never are."""
    semantics = workflow.contract.semantics if workflow is not None else None
    if semantics is None or not arguments:
        return Mapped(text=arguments)
    rules = semantics.rules(Side.ARGUMENTS, origin)
    found = mapped(arguments, rules, nearest=world.nearest)
    if found.refusal is None:
        return found
    message = f"arguments of {origin.action}{found.refusal.message}"
    refusal = msgspec.structs.replace(found.refusal, message=message)
    return msgspec.structs.replace(found, refusal=refusal)
