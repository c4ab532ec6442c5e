"""Values brought into their domains where they enter from outside, before the event is made (R13).

A session's input at its opening, a component's output when its attempt ends, arguments when their
call is made (`engine.calls`). What was found rides on the event; a refusal is SEMANTIC_MISMATCH, at
the boundary of whoever said the value. Only the contract of the session's own workflow counts.
"""

from typing import Final, TypeVar

import msgspec

from acp_spec.codec.json_text import find, splice
from acp_spec.model.enums import Boundary
from acp_spec.model.payload import ABSENT, Payload, is_absent, payload
from gateway.engine.definition import Workflow
from gateway.engine.events import AttemptEnded, OperationEnded
from gateway.engine.states import SessionState
from gateway.governance.domains import Nearest, nobody
from gateway.governance.meanings import Mapped, mapped
from gateway.governance.semantics import Origin, Side

Ended = TypeVar("Ended", AttemptEnded, OperationEnded)

OUTPUT = "/output"


class Meaning:
    """The one door of `nearest`; it keeps nothing of a session."""

    def __init__(self, nearest: Nearest = nobody) -> None:
        self.nearest = nearest

    def of_input(self, workflow: Workflow | None, text: Payload) -> Mapped:
        """The input of a new session; `refusal` says that the client is to mend it."""
        semantics = workflow.contract.semantics if workflow is not None else None
        if semantics is None or is_absent(text):
            return Mapped(text=bytes(text))
        found = mapped(bytes(text), semantics.rules(Side.INPUT), nearest=self.nearest)
        if found.refusal is None:
            return found
        refusal = msgspec.structs.replace(
            found.refusal,
            message=f"input{found.refusal.message}",
            boundary=Boundary.CLIENT,
        )
        return msgspec.structs.replace(found, refusal=refusal)

    def of_answer(self, state: SessionState, ended: Ended) -> Ended:
        """The end of an attempt, or of its operation, with the output in its domains."""
        if ended.error is not None or _goes_on(ended):
            return ended
        workflow, created = state.workflow, state.calls[ended.call_id].created
        semantics = workflow.contract.semantics if workflow is not None else None
        if semantics is None or is_absent(ended.response):
            return ended
        origin = Origin(action=created.action, step=created.step, component=created.component)
        rules = semantics.rules(Side.OUTPUT, origin)
        response = bytes(ended.response)
        output = find(response, OUTPUT) if rules else None
        if output is None:
            return ended
        found = mapped(output, rules, nearest=self.nearest)
        if found.refusal is not None:
            failure = msgspec.structs.replace(
                found.refusal,
                message=f"output{found.refusal.message}",
                boundary=Boundary.COMPONENT,
                side_effect=ended.side_effect,
            )
            return msgspec.structs.replace(
                ended, response=ABSENT, error=failure, mapped=found.values
            )
        if found.text != output:
            response = splice(response, OUTPUT, value=found.text)
        return msgspec.structs.replace(
            ended, response=payload(response), mapped=found.values, in_domain=found.in_domain
        )


def _goes_on(ended: AttemptEnded | OperationEnded) -> bool:
    """Was the call accepted as an operation? Its output comes later."""
    return isinstance(ended, AttemptEnded) and ended.operation_poll_after_ms is not None


NO_GUESSES: Final = Meaning()
"""Of a gateway without a `nearest`: names, foldings and synonyms count."""
