"""What a rule's expressions may name: one object per event, and the session's fixed facts.

An expression sees its own event and what was fixed at the opening, nothing else: so no rule can
count an event that another rule is charged with.
"""

from typing import Final

import msgspec

from gateway.rewards.rules import Each

SESSION: Final = "session"
PROGRESS: Final = "progress"
INPUT: Final = "input"
OUTPUT: Final = "output"


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Every field is always written, so that a rule never meets a missing one."""


class SessionFacts(Facts, frozen=True, kw_only=True):
    workflow: str = ""
    tenant: str = ""
    labels: dict[str, str] = {}


class EndFacts(Facts, frozen=True, kw_only=True):
    status: str = ""
    fell_back: bool = False
    error_reason: str = ""
    error_boundary: str = ""
    duration_ms: int = 0


class CallFacts(Facts, frozen=True, kw_only=True):
    step: str = ""
    loop: int = 0
    role: str = ""
    action: str = ""
    component: str = ""
    version: str = ""
    succeeded: bool = False
    reused: bool = False
    error_reason: str = ""
    error_boundary: str = ""
    side_effect: str = ""


class AttemptFacts(CallFacts, frozen=True, kw_only=True):
    number: int = 1
    sent: bool = False
    hedge: bool = False
    late: bool = False
    wait_ms: int = 0
    service_ms: int = 0


class LlmCallFacts(Facts, frozen=True, kw_only=True):
    model: str = ""
    tokens: int = 0
    latency_ms: float = 0.0


class DecisionFacts(Facts, frozen=True, kw_only=True):
    trigger: str = ""
    chosen: str = ""
    override: str = ""
    ended_as: str = ""


class FeedbackFacts(Facts, frozen=True, kw_only=True):
    kind: str = ""
    score: float = 0.0
    author: str = ""
    delay_ms: int = 0


class JudgementFacts(Facts, frozen=True, kw_only=True):
    name: str = ""
    value: float = 0.0


class CommentFacts(Facts, frozen=True, kw_only=True):
    kind: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    corrections: int = 0
    delay_ms: int = 0


class ProgressFacts(Facts, frozen=True, kw_only=True):
    """Where a session stands after a call: what a potential is made of."""

    ended: bool = False
    status: str = "RUNNING"
    fell_back: bool = False
    step: str = ""
    loop: int = 0
    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    planned: int = 0
    done: int = 0


FACTS_OF: Final[dict[Each, type[Facts]]] = {
    Each.END: EndFacts,
    Each.CALL: CallFacts,
    Each.ATTEMPT: AttemptFacts,
    Each.LLM_CALL: LlmCallFacts,
    Each.DECISION: DecisionFacts,
    Each.FEEDBACK: FeedbackFacts,
    Each.JUDGEMENT: JudgementFacts,
    Each.COMMENT: CommentFacts,
}
PAYLOADS_OF: Final[dict[Each, tuple[str, ...]]] = {
    Each.END: (INPUT, OUTPUT),
    Each.CALL: (OUTPUT,),
}
"""Payloads that a rule of this kind may look into, beside its facts."""


def name_of(each: Each) -> str:
    """The root under which an event's facts stand in expressions."""
    return each.value.lower()


class FactScope:
    """Facts by root name; each is written when an expression first asks for it."""

    def __init__(self, facts: dict[str, Facts], payloads: dict[str, bytes] | None = None) -> None:
        self._facts = facts
        self._texts: dict[str, bytes] = dict(payloads or {})

    def get(self, name: str, /) -> bytes | None:
        text = self._texts.get(name)
        if text is None and name in self._facts:
            text = self._texts[name] = msgspec.json.encode(self._facts[name])
        return text
