"""What a component remembers about calls, so that a repeat is answered and nothing is done twice.

`judge` is the rule (SPEC section 4, BY_KEY) as a pure function of one record; `OutcomeStore` keeps
the records. A record exists from before the handler starts: BEGUN that nobody finished (the
process died) is an unknown outcome, never a reason to run again.
"""

import enum
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

OUTCOMES_MAX_DEFAULT = 200_000
"""About 200 MB of small answers. A full store refuses new calls: forgetting would break the
promise.
"""


class Stage(enum.Enum):
    BEGUN = "BEGUN"
    """A handler was started and has not settled."""
    SETTLED = "SETTLED"
    """`outcome` is what every repeat gets."""
    FREE = "FREE"
    """It failed with side effect NONE: a repeat may run; only the attempt number is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    call_id: str
    digest: str
    attempt: int
    stage: Stage
    expires_at_ms: float
    outcome: bytes = b""


class Judgement(enum.Enum):
    RUN = "RUN"
    REPEAT = "REPEAT"
    CONFLICT = "CONFLICT"
    STALE = "STALE"
    LOST = "LOST"
    """Begun by a process that died: the outcome is unknown for ever."""


def judge(record: Record | None, *, digest: str, attempt: int, now_ms: float) -> Judgement:
    """What a call that is not running now means, given what is remembered of its call_id."""
    if record is None or record.expires_at_ms <= now_ms:
        return Judgement.RUN
    if record.digest != digest:
        return Judgement.CONFLICT
    if attempt < record.attempt:
        return Judgement.STALE
    return _OF_STAGE[record.stage]


_OF_STAGE = {
    Stage.BEGUN: Judgement.LOST,
    Stage.SETTLED: Judgement.REPEAT,
    Stage.FREE: Judgement.RUN,
}


class OutcomesUnavailable(Exception):
    """The store cannot be read or written now (a full disk, say)."""


class OutcomeStore(Protocol):
    """Keyed by call_id. `put` is durable (in the store's sense) when it returns.

    Every method may raise OutcomesUnavailable.
    """

    async def get(self, call_id: str) -> Record | None: ...

    async def put(self, record: Record) -> None: ...

    async def has_room(self, now_ms: float) -> bool:
        """Whether one more call may begin; expired records may be dropped to make room."""
        ...

    def close(self) -> None: ...


class MemoryOutcomes:
    """The default: bounded, gone with the process."""

    def __init__(self, outcomes_max: int = OUTCOMES_MAX_DEFAULT) -> None:
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._outcomes_max = outcomes_max

    async def get(self, call_id: str) -> Record | None:
        return self._records.get(call_id)

    async def put(self, record: Record) -> None:
        self._records[record.call_id] = record

    async def has_room(self, now_ms: float) -> bool:
        if len(self._records) < self._outcomes_max:
            return True
        # The oldest entries expire first unless actions differ in TTL; a full sweep settles both.
        expired = [key for key, record in self._records.items() if record.expires_at_ms <= now_ms]
        for key in expired:
            del self._records[key]
        return len(self._records) < self._outcomes_max

    def close(self) -> None:
        self._records.clear()
