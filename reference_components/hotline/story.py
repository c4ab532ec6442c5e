"""The same question of the same customer, before and after another call: the second plan differs.

What made the difference was remembered by the call between. Which story can be told depends on
which components run; the last one needs none of them.
"""

from dataclasses import dataclass

import msgspec

from acp_spec.model.payload import is_absent
from acp_spec.model.plan import SubGoal
from acp_spec.sdk.gateway_client import GatewayClient
from reference_components.hotline.calls import Ended, one_call
from reference_components.hotline.questions import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """`question` is asked, then `between`, then `question` again."""

    needs: tuple[str, ...]
    customer: str
    question: str
    between: str
    why: str


STORIES = (
    Story(
        needs=("ledger", "rates"),
        customer="ada",
        question="My top-up is still pending",
        between="How do I exchange money into euros in the app?",
        why="the balance is now also told in the currency that the customer asked for before",
    ),
    Story(
        needs=("cards",),
        customer="ben",
        question="The contactless chip stopped working",
        between="I lost my card somewhere in town",
        why="the plan now speaks of the card that replaced the lost one",
    ),
    Story(
        needs=(),
        customer="cleo",
        question="I do not recognise this direct debit",
        between="I do not recognise this direct debit",
        why="a colleague has the question already, so it is not handed over once more",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A story and its three sessions."""

    story: Story
    before: Ended
    between: Ended
    after: Ended

    @property
    def changed(self) -> bool:
        """True when the second plan is another one."""
        return plan_lines(self.before) != plan_lines(self.after)


def tell(client: GatewayClient, workflow: str, *, running: set[str]) -> Told:
    """Run the first story whose components all run."""
    story = next(one for one in STORIES if set(one.needs) <= running)

    def ask(text: str) -> Ended:
        question = Question(text=text, customer=story.customer)
        return one_call(client, workflow, question=question)

    before = ask(story.question)
    between = ask(story.between)
    return Told(story=story, before=before, between=between, after=ask(story.question))


def plan_lines(ended: Ended) -> list[str]:
    """The plan that a session ran, a line per sub-goal; what it says when there is none."""
    plans = ended.trajectory.plan
    if not plans:
        return ["no plan"]
    lines = [_line(goal) for goal in plans[-1].plan.sub_goals]
    return lines or [plans[-1].rationale]


def _line(goal: SubGoal) -> str:
    arguments = "" if is_absent(goal.arguments) else bytes(goal.arguments).decode()
    bound = [f"{one.to[1:]} from {one.from_}{one.pointer}" for one in goal.bindings]
    more = f" with {', '.join(bound)}" if bound else ""
    return f"{goal.id}: {goal.action} {arguments}{more}"


def as_data(told: Told) -> dict[str, object]:
    """The story for a program."""
    return {
        "customer": told.story.customer,
        "question": told.story.question,
        "between": told.story.between,
        "changed": told.changed,
        "why": told.story.why,
        "before": {"session_id": told.before.view.session_id, "plan": plan_lines(told.before)},
        "after": {"session_id": told.after.view.session_id, "plan": plan_lines(told.after)},
        "remembered": [
            msgspec.json.decode(bytes(one.memory))
            for one in told.after.trajectory.observations
            if not is_absent(one.memory)
        ][:1],
    }
