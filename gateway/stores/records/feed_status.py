"""How a feed stands, as its process tells it: counts, the place it has come to, comparisons."""

import enum

import msgspec


class FeedCounts(msgspec.Struct, kw_only=True):
    """What this process fed since its start."""

    batches: int = 0
    sessions: int = 0
    rows: int = 0
    erased: int = 0
    quarantined: int = 0


class Outcome(enum.Enum):
    """How a comparison stands."""

    NONE = "NONE"
    RUNNING = "RUNNING"
    IDENTICAL = "IDENTICAL"
    HEALED = "HEALED"


class Comparison(msgspec.Struct, kw_only=True):
    """`sessions`: the first of those that differed, or were there although they were erased."""

    outcome: Outcome = Outcome.NONE
    why: str = ""
    compared: int = 0
    damaged_parts: int = 0
    differing: int = 0
    unusable: int = 0
    sessions: list[str] = []


class FeedingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`waiting_bytes`: of the log, not in the store yet. `comparisons`: those carried to the end.

    `problem`: why nothing is fed now.
    """

    pid: int
    waiting_bytes: int
    file: str
    offset: int
    counts: FeedCounts
    comparison: Comparison
    comparisons: int = 0
    problem: str = ""
