"""The rate of a target: a token for each admission, wherever the disk lets it wait."""

from acp_spec.model.enums import SideEffect
from gateway.engine.events import AttemptEnded, AttemptStarted, OperationEnded
from gateway.simulation.cards import RATES
from gateway.simulation.target_laws import TargetLaws

INTERVAL_S = 1.0 / RATES["model"]
"""Two at once, and then one in each."""


class Story:
    """What happens at one instance of `model`, and the laws that it broke."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.broken: list[str] = []
        self.laws = TargetLaws(lambda: self.now_s, lambda law, what: self.broken.append(law))

    def admits(self, *names: str) -> None:
        for name in names:
            self.laws.started(
                AttemptStarted(
                    at_ms=0,
                    call_id=name,
                    attempt=1,
                    component="model",
                    version="1.0.0",
                    instance="here",
                    timeout_ms=1_000,
                )
            )

    def arrives(self, *names: str) -> None:
        for name in names:
            self.laws.arrives((name, 1))

    def ends(self, name: str) -> None:
        ended = AttemptEnded(at_ms=0, call_id=name, attempt=1, side_effect=SideEffect.NONE)
        self.laws.ended(ended)


def test_a_burst_and_then_one_in_each_interval_is_kept() -> None:
    story = Story()
    story.admits("a", "b")
    for name in "cdefg":
        story.now_s += INTERVAL_S
        story.admits(name)
    assert not story.broken


def test_one_more_than_the_burst_breaks_the_law_even_if_it_arrives_much_later() -> None:
    story = Story()
    story.admits("a", "b")
    story.now_s += INTERVAL_S * 0.99
    story.admits("c")
    assert story.broken == ["rates are kept"]


def test_those_who_waited_for_their_sync_may_arrive_together() -> None:
    story = Story()
    story.admits("a", "b")
    story.now_s += INTERVAL_S
    story.admits("c")
    story.arrives("a", "b", "c")
    assert not story.broken


def test_the_token_of_what_never_arrived_is_there_for_another() -> None:
    story = Story()
    story.admits("a", "b")
    story.ends("a")
    story.admits("c")
    assert not story.broken
    story.arrives("b")
    story.ends("b")
    story.admits("d")
    assert story.broken == ["rates are kept"], "what has arrived has used its token"


def test_what_waited_while_a_call_back_ended_its_call_used_no_token() -> None:
    story = Story()
    story.admits("a", "b")
    over = OperationEnded(at_ms=0, call_id="a", attempt=1, side_effect=SideEffect.NONE)
    story.laws.operation_ended("here", over)
    story.admits("c")
    assert not story.broken


def test_a_new_life_counts_anew() -> None:
    story = Story()
    story.admits("a", "b")
    story.laws.life_ended()
    story.admits("c", "d")
    assert not story.broken
