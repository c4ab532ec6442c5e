"""A run's lineage as lines for a person; what others wrote is made harmless by whoever prints."""

from collections.abc import Iterator

from acp_spec.model.trajectory import FeedbackRow, Rewards
from gateway.runtime.lineage import AttemptLine, CallLine, LineageRun, Work


def run_text(run: LineageRun) -> str:
    """Everything of it, one thing a line."""
    return "\n".join(_lines(run))


def _lines(run: LineageRun) -> Iterator[str]:
    head = run.head
    took = f" after {head.duration_ms} ms" if head.duration_ms is not None else ""
    why = f" ({head.error})" if head.error else ""
    fell = ", fell back" if head.fell_back else ""
    yield f"{head.session_id}  {head.status}{why}{fell}{took}, opened {head.opened_at}"
    yield f"lineage   {head.lineage_id}"
    yield f"workflow  {head.workflow} {head.workflow_sha256}".rstrip()
    yield f"input     {head.input_sha256}"
    yield from (f"policy    {name}: {policy}" for name, policy in run.policies.items())
    yield from (f"rollout   {one.rollout} {one.stage} {one.arm}" for one in run.rollouts)
    yield from map(_work, run.work)
    yield from (
        f"deviation {one.step}: {one.intended} was intended, {one.served} served"
        for one in run.deviations
    )
    for call in run.calls:
        yield _call(call)
        yield from map(_attempt, call.attempts)
    yield from _places(run)
    yield from map(_feedback, run.feedback)
    yield from _rewards(run.rewards)


def _work(one: Work) -> str:
    intended, served = one.intended or "nobody pinned", ", ".join(one.served)
    if not served:
        return f"intended  {one.work}: {intended}, not called"
    other = "" if one.served == (one.intended,) else f", served {served}"
    return f"intended  {one.work}: {intended}{other}"


def _call(one: CallLine) -> str:
    loop = f" loop {one.loop}" if one.loop else ""
    goal = f" for {one.sub_goal}" if one.sub_goal else ""
    reused = f", taken over from {one.reused_from}" if one.reused_from else ""
    return f"call      {one.call_id}  {one.step}{loop} {one.action or one.role}{goal}{reused}"


def _attempt(one: AttemptLine) -> str:
    served = f"{one.component or 'nobody'} {one.instance}".rstrip()
    took = f", took {one.service_ms} ms" if one.service_ms is not None else ""
    waited = f", waited {one.wait_ms} ms" if one.wait_ms else ""
    failed = f", {one.error}" if one.error else ""
    span = f", span {one.span_id}" if one.span_id else ""
    parameters = f", parameters {one.parameter_version}" if one.parameter_version else ""
    return f"          #{one.attempt} {served}{waited}{took}{parameters}{span}{failed}"


def _places(run: LineageRun) -> Iterator[str]:
    trace, logs = run.trace, run.logs
    if trace.trace_id:
        where = trace.url or ("" if trace.is_recorded else "not recorded")
        yield f"trace     {trace.trace_id}  {where}".rstrip()
    yield f"logs      {logs.filter}" + (f"  {logs.url}" if logs.url else "")


def _feedback(row: FeedbackRow) -> str:
    given = row.feedback
    score = "" if given.score is None else f" {given.score}"
    target = given.target.call_id or given.target.step or "session"
    said = f": {given.comment}" if given.comment else ""
    return f"feedback  {given.kind.value}{score} of {target} by {given.author}{said}"


def _rewards(rewards: Rewards) -> Iterator[str]:
    for row in rewards.quality:
        value = f"{row.validity} {row.reason}" if row.value is None else str(row.value)
        yield f"reward    {row.name} {value} {row.source}".rstrip()
    if rewards.vector is not None:
        rules, session = rewards.vector.rules, rewards.vector.session
        quality = session.quality
        value = quality.validity.value if quality.value is None else str(quality.value)
        yield (
            f"reward    by {rules.name}@{rules.version}: session {value},"
            f" operational {session.operational}"
        )
