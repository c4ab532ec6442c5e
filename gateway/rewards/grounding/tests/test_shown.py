"""What a reviewer reads at a source: the value, the beginning of too much, or that it is empty."""

from acp_spec.model.calls import Claim
from gateway.rewards.grounding.claims import SOURCES_MAX
from gateway.rewards.grounding.judging import CLAIMS_MAX, calls_of
from gateway.rewards.grounding.shown import SourceFound, call_of, required, source_shown
from gateway.rewards.grounding.tests.records import attempt, session

CALLS = calls_of(
    session(attempt("look", '{"balance": 12.50, "name": "Ann", "notes": "' + "x" * 400 + '"}'))
)


def test_a_value_is_shown_as_it_stands() -> None:
    found = source_shown("/calls/look/output/balance", CALLS)
    assert (found.found, found.says) == (SourceFound.VALUE, "12.50")
    assert source_shown("/calls/look/output/name", CALLS).says == '"Ann"'


def test_what_is_too_long_is_told_with_its_length() -> None:
    found = source_shown("/calls/look/output/notes", CALLS)
    assert (found.found, found.characters) == (SourceFound.CUT, 402)
    whole = source_shown("/calls/look", CALLS)
    assert whole.found is SourceFound.CUT
    assert '"balance"' in whole.says


def test_a_source_that_leads_nowhere_says_so() -> None:
    for pointer in ("/calls/none/output", "/calls/look/output/nothing", "nonsense", "", "/calls"):
        assert source_shown(pointer, CALLS).found is SourceFound.NOWHERE, pointer
    assert call_of("/calls/none/output", CALLS) is None
    assert call_of("/calls", CALLS) is None


def test_every_source_must_be_opened_as_far_as_the_guard_itself_looks() -> None:
    few = session(claims=(Claim(text="a", sources=("/x", "/y")), Claim(text="b")))
    assert required(few) == ((0, 0), (0, 1))
    many = Claim(text="c", sources=tuple(map(str, range(SOURCES_MAX + 5))))
    crowd = session(claims=(many,) * (CLAIMS_MAX + 5))
    assert len(required(crowd)) == CLAIMS_MAX * SOURCES_MAX
