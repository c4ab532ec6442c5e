"""A contract's demands on sandboxes: read with their faults, held against cards."""

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Boundary, Role, SideEffect
from acp_spec.model.sandbox import USUAL, Guard, Sandbox
from acp_spec.model.session import Problem
from gateway.governance.contract import Contract, parse_contract
from gateway.governance.sandbox_demands import Demand, SandboxDemands, refusal

FULL = tuple(guard.value for guard in Guard)


def demands(text: str) -> SandboxDemands:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    assert contract.sandbox is not None
    return contract.sandbox


def faults(text: str) -> tuple[Problem, ...]:
    problems = parse_contract(text.encode())
    assert isinstance(problems, tuple)
    return problems


def card(offered: Sandbox | None) -> Card:
    action = Action(name="python.run", sandbox=offered)
    return Card(name="pad", version="1.0.0", roles=(Role.EXECUTOR,), actions=(action,))


def test_a_line_says_guards_and_sizes_and_an_empty_one_the_usual_guards() -> None:
    found = demands(
        "sandbox:\n"
        "  python.*: {guards: [network, MEMORY_EXACT], max_memory_bytes: 1000, max_wall_ms: 5}\n"
        "  text.count: {}\n"
    )
    first, second = found.lines
    assert first == Demand(
        action="python.*",
        guards=(Guard.NETWORK, Guard.MEMORY_EXACT),
        memory_bytes=1000,
        wall_ms=5,
    )
    assert second == Demand(action="text.count", guards=USUAL)


def test_faults_are_told_with_their_place() -> None:
    (unknown,) = faults("sandbox:\n  a: {guards: [NETWROK]}\n")
    assert (unknown.line, unknown.path) == (2, "sandbox.a.guards[0]")
    assert "did you mean 'network'?" in unknown.message
    (key,) = faults("sandbox: {a: {max_memory_mb: 5}}")
    assert "max_memory_bytes" in key.message
    (size,) = faults("sandbox: {a: {max_wall_ms: 0}}")
    assert size.path == "sandbox.a.max_wall_ms"
    (name,) = faults("sandbox: {'a*b': {}}")
    assert "beginning of names" in name.message


def test_what_a_card_offers_is_enough_or_what_lacks_is_named() -> None:
    wanted = demands("sandbox: {python.*: {max_memory_bytes: 600, max_wall_ms: 50}}")
    enough = Sandbox(memory_bytes=600, wall_ms=10, guards=FULL)
    assert refusal(wanted, card(enough), action="python.run") is None
    poor = Sandbox(memory_bytes=700, guards=tuple(set(FULL) - {"NETWORK"}))
    found = refusal(wanted, card(poor), action="python.run")
    assert found is not None
    assert (found.reason, found.side_effect) == ("SANDBOX_LIMIT", SideEffect.NONE)
    assert found.boundary is Boundary.GATEWAY
    for part in ("no NETWORK", "memory_bytes 700, at most 600", "wall_ms without a limit"):
        assert part in found.message


def test_a_card_that_says_nothing_offers_nothing() -> None:
    wanted = demands("sandbox: {'*': {guards: [WHOLE_TREE]}}")
    assert refusal(wanted, card(None), action="python.run") is not None
    assert refusal(wanted, card(None), action="no.such.action") is not None


def test_only_actions_that_a_line_is_about_are_held_to_it() -> None:
    wanted = demands("sandbox: {python.run: {}, python.*: {guards: []}}")
    assert refusal(wanted, card(None), action="python.running") is None
    assert refusal(wanted, card(None), action="") is None
    assert refusal(None, card(None), action="python.run") is None


def test_every_line_that_is_about_an_action_holds() -> None:
    wanted = demands("sandbox: {python.*: {guards: []}, python.run: {guards: [NETWORK]}}")
    found = refusal(wanted, card(None), action="python.run")
    assert found is not None
    assert "no NETWORK" in found.message


@given(st.sets(st.sampled_from(list(Guard))), st.sets(st.sampled_from(list(Guard))))
def test_more_guards_never_turn_a_yes_into_a_no(offered: set[Guard], more: set[Guard]) -> None:
    wanted = SandboxDemands(lines=(Demand(action="*", guards=tuple(Guard)[::3]),))
    some = Sandbox(guards=tuple(guard.value for guard in offered))
    all_of_them = Sandbox(guards=tuple(guard.value for guard in offered | more))
    if refusal(wanted, card(some), action="python.run") is None:
        assert refusal(wanted, card(all_of_them), action="python.run") is None
