"""A bounded load on a workflow, and how its components kept their SLA meanwhile.

So many sessions at once, for so many seconds, over inputs in turn; then every trajectory is read
and each component judged by the same rules as at run time (`governance/sla_judge`). A load too
small to judge is no proof, and fails.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from acp_spec.model.enums import Boundary, SessionStatus, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import Payload
from acp_spec.model.session import SessionView
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.cli.batch import Batch
from gateway.cli.contract_report import Check, Figures, Kind
from gateway.governance import sla_judge
from gateway.governance.contract import Contract
from gateway.governance.sla import Sla
from gateway.governance.sla_judge import Breach
from gateway.governance.sla_window import Counts

SESSIONS_AT_ONCE_MAX: Final = 256
SECONDS_MAX: Final = 600
SESSIONS_MAX: Final = 50_000
"""In one run; each trajectory is read afterwards."""
READERS: Final = 8
_BROKEN: Final = (Reason.CONTRACT_VIOLATION.value, Reason.SEMANTIC_MISMATCH.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`at_once` sessions at once, for `seconds`."""

    at_once: int
    seconds: float


@dataclass(slots=True)
class _Served:
    """What one component did."""

    took_ms: list[int] = field(default_factory=list)
    calls: int = 0
    failed: int = 0
    slow: int = 0
    sessions: int = 0
    fell_back: int = 0


def run(
    batch: Batch, inputs: Sequence[Payload], *, load: Load, ended: Callable[[], None]
) -> list[SessionView]:
    """Every session of the load, as it ended; `ended` is called with each."""
    until = time.monotonic() + load.seconds
    count = iter(range(SESSIONS_MAX))

    def work() -> list[SessionView]:
        views = []
        while time.monotonic() < until and (number := next(count, None)) is not None:
            views.append(batch.one(inputs[number % len(inputs)]))
            ended()
        return views

    with ThreadPoolExecutor(load.at_once, thread_name_prefix="acp-load") as pool:
        working = [pool.submit(work) for _ in range(load.at_once)]
        return [view for one in working for view in one.result()]


def trajectories(
    batch: Batch, views: Iterable[SessionView], *, read: Callable[[], None]
) -> Iterator[Trajectory]:
    """What was recorded of these sessions; `read` is called with each."""

    def ask(view: SessionView) -> Trajectory:
        return batch.gateway.ask(Trajectory, "get_trajectory", view.session_id)

    with ThreadPoolExecutor(READERS, thread_name_prefix="acp-read") as pool:
        for record in pool.map(ask, views):
            yield record
            read()


def judged(
    contract: Contract, records: Iterable[Trajectory], *, seconds: float
) -> tuple[Check, ...]:
    """One check per component that was called or that the contract has demands on."""
    served: dict[str, _Served] = {one.component: _Served() for one in contract.sla}
    reasons: Counter[str] = Counter()
    for record in records:
        _add(served, record, contract=contract)
        if record.error is not None:
            reasons[record.error.reason] += 1
    checks = [
        _judge(name, found, sla=contract.sla_of(name), seconds=seconds)
        for name, found in sorted(served.items())
    ]
    broken = sum(reasons[reason] for reason in _BROKEN)
    told = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    whole = Check(kind=Kind.LOAD, name="no session breaks the contract", passed=not broken)
    if told:
        whole = Check(kind=whole.kind, name=whole.name, passed=whole.passed, message=told)
    return (whole, *checks)


def _add(served: dict[str, _Served], record: Trajectory, *, contract: Contract) -> None:
    called: dict[str, bool] = {}
    made: set[str] = set()
    for row in record.calls:
        if not row.component or not row.sent_at or row.reused:
            continue
        found = served.setdefault(row.component, _Served())
        failed = _count(found, row, sla=contract.sla_of(row.component))
        called[row.component] = called.get(row.component, False) or failed
        if row.role in (StepRole.PLAN.value, StepRole.EXECUTE.value):
            made.add(row.component)
    if record.status is SessionStatus.CANCELLED:
        return
    blamed = {name for name, failed in called.items() if failed} or made
    for name in called:
        served[name].sessions += 1
        served[name].fell_back += record.fell_back and name in blamed


def _count(found: _Served, row: Attempt, *, sla: Sla | None) -> bool:
    """Count one attempt, unless it says nothing of the component; True if the component failed."""
    if row.error is not None and not _is_theirs(row.error):
        return False
    took_ms = took_ms_of(row)
    found.calls += 1
    found.failed += row.error is not None
    if took_ms is not None:
        found.took_ms.append(took_ms)
        found.slow += sla is not None and 0 < sla.max_latency_ms < took_ms
    return row.error is not None


def took_ms_of(row: Attempt) -> int | None:
    """Service time; of a gateway that does not tell it, from sending to the answer."""
    if row.service_ms is not None:
        return row.service_ms
    sent_at_ms, ended_at_ms = row.sent_at_ms, row.ended_at_ms
    return None if sent_at_ms is None or ended_at_ms is None else ended_at_ms - sent_at_ms


def _is_theirs(failure: AcpError) -> bool:
    ours = failure.boundary in (Boundary.CLIENT, Boundary.GATEWAY)
    return not ours and failure.reason != Reason.CANCELLED.value


def _judge(name: str, found: _Served, *, sla: Sla | None, seconds: float) -> Check:
    figures = Figures(
        component=name,
        calls=found.calls,
        failed=found.failed,
        slow=found.slow,
        sessions=found.sessions,
        fell_back=found.fell_back,
        success_rate=_share(found.calls - found.failed, found.calls),
        fallback_rate=_share(found.fell_back, found.sessions),
        p50_ms=_percentile(found.took_ms, 0.5),
        p95_ms=_percentile(found.took_ms, 0.95),
        p99_ms=_percentile(found.took_ms, 0.99),
        max_ms=max(found.took_ms, default=0),
        calls_per_s=round(found.calls / seconds, 3) if seconds else 0.0,
        demanded=_demanded(sla),
    )
    message = _verdict(found, sla)
    title = f"{name} keeps its SLA" if sla else f"{name} (nothing is demanded)"
    return Check(kind=Kind.LOAD, name=title, passed=not message, message=message, figures=figures)


def _verdict(found: _Served, sla: Sla | None) -> str:
    """Why the SLA is not kept, or not proven; empty when it is kept."""
    if sla is None:
        return ""
    if found.calls < sla.min_samples:
        return (
            f"{found.calls} calls are too few to judge; its min_samples is {sla.min_samples}:"
            " load more, or longer"
        )
    counts = Counts(
        calls=found.calls,
        failed=found.failed,
        slow=found.slow,
        sessions=found.sessions,
        fell_back=found.fell_back,
    )
    broken = sla_judge.broken_by(sla, counts)
    return sla_judge.told(sla, Breach(since_ms=0, broken=broken, counts=counts)) if broken else ""


def _demanded(sla: Sla | None) -> dict[str, float]:
    if sla is None:
        return {}
    stated = {
        "max_latency_ms": float(sla.max_latency_ms) if sla.max_latency_ms else None,
        "latency_quantile": sla.latency_quantile if sla.max_latency_ms else None,
        "min_success_rate": sla.min_success_rate or None,
        "max_fallback_rate": sla.max_fallback_rate if sla.max_fallback_rate < 1 else None,
    }
    return {key: value for key, value in stated.items() if value is not None}


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _percentile(values: list[int], share: float) -> int:
    """The least value that this share of them does not exceed."""
    if not values:
        return 0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
