"""Trajectories by hand: as little of one as a test is about."""

import json

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import ABSENT, Payload, payload
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    Lineage,
    OperationalReward,
    QualityReward,
    Rewards,
    Trajectory,
)

START_MS = 1_764_460_800_000
"""2025-11-30T00:00:00Z."""


def json_of(value: object) -> Payload:
    return payload(json.dumps(value).encode())


def attempt(
    call_id: str = "c1", *, output: object = None, failed: str = "", **fields: object
) -> Attempt:
    """An attempt that was sent and ended, well unless `failed` gives a reason."""
    plain = Attempt(
        call_id=call_id,
        attempt=1,
        step="ask",
        role="EXECUTE",
        component="desk",
        component_version="1.0.0",
        action="desk.ask",
        arguments=json_of({"kind": "easy"}),
        output=ABSENT if failed else json_of(output),
        error=error(Reason(failed), "no") if failed else None,
        sent_at=rfc3339(START_MS),
        ended_at=rfc3339(START_MS + 5),
    )
    return msgspec.structs.replace(plain, **fields)


def record(
    session_id: str = "s1",
    *calls: Attempt,
    status: SessionStatus = SessionStatus.SUCCEEDED,
    begun_ms: int = 0,
    took_ms: int = 10,
    **fields: object,
) -> Trajectory:
    plain = Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=session_id,
        lineage_id=f"{session_id}.000000000000",
        lineage=Lineage(workflow_sha256="w"),
        workflow="four@1.0.0",
        status=status,
        input=json_of({"query": "hello"}),
        calls=calls,
        opened_at=rfc3339(START_MS + begun_ms),
        ended_at=rfc3339(START_MS + begun_ms + took_ms),
    )
    return msgspec.structs.replace(plain, **fields)


def rewarded(one: Trajectory, *values: float | None, name: str = "helpful") -> Trajectory:
    """With these judgements, and an operational reward by its status."""
    quality = tuple(QualityReward(name=name, value=value) for value in values)
    succeeded = one.status is SessionStatus.SUCCEEDED
    rewards = Rewards(quality=quality, operational=OperationalReward(succeeded=succeeded))
    return msgspec.structs.replace(one, rewards=rewards)
