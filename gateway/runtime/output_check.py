"""Answers against the card that was called: output that breaks its schema is none (EXE-005)."""

from typing import TypeVar

import msgspec

from acp_spec.codec.json import reread
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.card import Card
from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import ABSENT, is_absent
from gateway.engine.action_schemas import output_problem
from gateway.engine.events import AttemptEnded, OperationEnded

Ended = TypeVar("Ended", AttemptEnded, OperationEnded)


def checked_attempt(ended: AttemptEnded, card: Card | None, *, action: str) -> AttemptEnded:
    """The end of an attempt as it counts."""
    if ended.error is not None or ended.operation_poll_after_ms is not None:
        return ended
    return _checked(ended, card, action=action)


def checked_operation(ended: OperationEnded, card: Card | None, *, action: str) -> OperationEnded:
    """The end of an operation as it counts."""
    return ended if ended.error is not None else _checked(ended, card, action=action)


def _checked(ended: Ended, card: Card | None, *, action: str) -> Ended:
    declared = card.action(action) if card and action else None
    if declared is None or is_absent(declared.output_schema):
        return ended
    try:
        output = reread(ExecuteResponse, bytes(ended.response)).output
    except AcpFailure:
        return ended  # the engine tells what is wrong with it
    problem = output_problem(declared, bytes(output), did=ended.side_effect)
    if problem is None:
        return ended
    return msgspec.structs.replace(ended, response=ABSENT, error=problem)
