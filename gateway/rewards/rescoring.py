"""Scoring history again: which record tells what was known at a time, and the row beside it. Pure.

A session stands in the log several times, once more for each late judgement. As of a time counts
the last record that knew nothing later: a judgement revised since is there as it was said then.
"""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from acp_spec.model.reward_vector import RewardVector
from acp_spec.model.trajectory import Trajectory
from gateway.rewards.rules import RewardRules
from gateway.rewards.scoring import newest_ms
from gateway.rewards.vector import vector

ROW_VERSION: Final = "1.0"


class RescoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """Rewards of one session by named rules as of a time (both in `vector`)."""

    schema_version: str = ROW_VERSION
    session_id: str
    sequence: int
    workflow: str
    tenant: str
    vector: RewardVector


@dataclass(slots=True)
class KnownBy:
    """The first pass: which record of each session is the last that was known by `as_of_ms`."""

    as_of_ms: int | None = None
    newest_ms: int = 0
    _sequences: dict[str, int] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)

    def look(self, trajectory: Trajectory) -> None:
        known_ms = newest_ms(trajectory)
        if self.as_of_ms is not None and known_ms > self.as_of_ms:
            self._unknown.add(trajectory.session_id)
            return
        self.newest_ms = max(self.newest_ms, known_ms)
        before = self._sequences.get(trajectory.session_id, -1)
        self._sequences[trajectory.session_id] = max(before, trajectory.sequence)

    @property
    def time_ms(self) -> int:
        """The time that was asked for, else that of the newest thing in all records."""
        return self.newest_ms if self.as_of_ms is None else self.as_of_ms

    @property
    def not_known_yet(self) -> int:
        """Sessions whose every record knows something later."""
        return len(self._unknown - self._sequences.keys())

    def takes(self, trajectory: Trajectory) -> bool:
        """True once for each session: for the record that counts, the first time it comes."""
        if self._sequences.get(trajectory.session_id) != trajectory.sequence:
            return False
        if self.as_of_ms is not None and newest_ms(trajectory) > self.as_of_ms:
            return False
        self._sequences[trajectory.session_id] = _DONE
        return True


_DONE: Final = -2


def rescored(trajectory: Trajectory, rules: RewardRules, *, as_of_ms: int) -> RescoredRow:
    """The row beside the record, which stays as it is."""
    return RescoredRow(
        session_id=trajectory.session_id,
        sequence=trajectory.sequence,
        workflow=trajectory.workflow,
        tenant=trajectory.tenant,
        vector=vector(trajectory, rules, as_of_ms=as_of_ms),
    )
