"""How a session ends: with its output, with its fallback's, or with an error (SPEC section 8).

The output is evaluated here, once, and held against the contract: what does not fit is not given
out. Pure work whose results are events; replay never comes here.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, SessionStatus
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import ABSENT, Payload, payload
from gateway.engine import side_effects
from gateway.engine.contract_checks import input_problem, output_problem, violation
from gateway.engine.definition import Mapping
from gateway.engine.events import AnyEvent, SessionEnded
from gateway.engine.rejections import OUTPUT_CHECK, validation
from gateway.engine.scope import SessionScope
from gateway.engine.states import SessionState
from gateway.engine.world import World
from gateway.expressions.expression import ExpressionError
from gateway.governance.contract import NO_CONTRACT, Contract, OnOutputBreach

NO_FALLBACK = "the reflector asked for FALLBACK and the workflow has none"


def ended(state: SessionState, world: World) -> tuple[AnyEvent, ...]:
    """The end that something asked for: a failure, a cancel, a client, a fallback."""
    ending = state.ending
    assert ending is not None, "asked for an end that nobody wants"
    if ending.fall_back:
        return (_fallen_back(state, world),)
    end = SessionEnded(
        at_ms=world.at_ms,
        status=ending.status,
        error=ending.error and side_effects.of_session(ending.error, state),
        output=ending.output,
        fell_back=ending.fell_back,
    )
    return (end,)


def succeeded(state: SessionState, world: World) -> tuple[AnyEvent, ...]:
    """The end behind the last step. An output that breaks the contract is recorded as such."""
    mapping = state.workflow.output if state.workflow else None
    output = _evaluated(state, world, mapping=mapping)
    if isinstance(output, AcpError):
        return (_failed(state, world, failure=output),)
    contract = _contract(state)
    breach = output_problem(contract, bytes(output))
    if breach is None:
        return (_given(world, output, fell_back=False),)
    told = validation(state, breach.message, author=OUTPUT_CHECK)
    if contract.on_output_breach is OnOutputBreach.FALLBACK:
        return (*told, _fallen_back(state, world))
    return (*told, _failed(state, world, failure=breach))


def refused_input(state: SessionState, world: World) -> tuple[AnyEvent, ...]:
    """The end of a session whose input its own version does not take.

    A client's input is refused before anything opens, by the contract of the version that the
    client meant. A rollout may have chosen another one since: that one fails, and its rollout sees.
    """
    problem = input_problem(state.workflow, bytes(state.opened.input))
    if problem is None:
        return ()
    return (
        _failed(state, world, failure=msgspec.structs.replace(problem, boundary=Boundary.GATEWAY)),
    )


def _fallen_back(state: SessionState, world: World) -> SessionEnded:
    """The fallback's output keeps the contract too, or the session fails."""
    fallback = state.workflow.fallback if state.workflow else None
    if fallback is None:
        failure = error(Reason.CONTRACT_VIOLATION, NO_FALLBACK, boundary=Boundary.GATEWAY)
        return _failed(state, world, failure=failure)
    output = _evaluated(state, world, mapping=fallback.output)
    if isinstance(output, AcpError):
        return _failed(state, world, failure=output)
    breach = output_problem(_contract(state), bytes(output))
    return (
        _given(world, output, fell_back=True)
        if breach is None
        else _failed(state, world, failure=breach)
    )


def _evaluated(state: SessionState, world: World, *, mapping: Mapping | None) -> Payload | AcpError:
    if mapping is None:
        return ABSENT
    try:
        return payload(mapping.expression.evaluate(SessionScope(state, world.signals)))
    except ExpressionError as problem:
        text = mapping.expression.text
        return violation(mapping.field, mapping.line, text=text, problem=problem)


def _contract(state: SessionState) -> Contract:
    return state.workflow.contract if state.workflow else NO_CONTRACT


def _given(world: World, output: Payload, *, fell_back: bool) -> SessionEnded:
    return SessionEnded(
        at_ms=world.at_ms, status=SessionStatus.SUCCEEDED, output=output, fell_back=fell_back
    )


def _failed(state: SessionState, world: World, *, failure: AcpError) -> SessionEnded:
    told = side_effects.of_session(failure, state)
    return SessionEnded(at_ms=world.at_ms, status=SessionStatus.FAILED, error=told)
