"""`acp replay-traffic`: recorded sessions through a candidate combination, compared end to end.

The gateway runs them as twins, so nothing that writes is sent. What is not compared is counted with
its reason. The exit code says whether every figure kept its limit.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.outputs import check_place, write_file

if TYPE_CHECKING:
    from acp_spec.model.trajectory import Trajectory
    from gateway.cli.remote import Gateway
    from gateway.governance.replay_verdict import ReplayedPair, ReplayLimits, ReplayVerdict
    from gateway.runtime.replays import ReplayResult

PARALLEL = 4
"""As many twins as a gateway runs at once."""
BATCH = 64
"""Recorded sessions held in memory."""
WAIT_S = 120
"""A replay's own deadline ends it long before."""

app = typer.Typer()


@dataclass(slots=True)
class Replayed:
    """What came of all: the pairs, and why the others are none."""

    pairs: list["ReplayedPair"] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, why: str) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + 1


@app.command("replay-traffic")
def replay_traffic(
    workflow: Annotated[str, typer.Option(help="Name or name@range that runs them.")],
    candidate: Annotated[
        list[str], typer.Option(help="component@version,...; repeatable. Must be registered.")
    ],
    source: Annotated[
        Path, typer.Option("--from", help="A data directory, or a file or folder of trajectories.")
    ],
    limit: Annotated[int, typer.Option(help="At most so many of the record; 0 = all.", min=0)] = 0,
    report: Annotated[Path | None, typer.Option(help="Write the verdict there, as JSON.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Pointer of an output field that may differ.")
    ] = None,
    success_drop: Annotated[float, typer.Option(help="So much less success is allowed.")] = 0.0,
    fallback_rise: Annotated[float, typer.Option(help="So many more fallbacks.")] = 0.0,
    latency_rise: Annotated[float, typer.Option(help="So much longer, relative.")] = 0.25,
    latency_slack_ms: Annotated[float, typer.Option(help="And so many ms on top.")] = 10.0,
    calls_rise: Annotated[float, typer.Option(help="So many more calls, relative.")] = 0.25,
    equal_least: Annotated[
        float, typer.Option(help="At least this share of outputs equal.")
    ] = 0.99,
    uncovered_most: Annotated[
        float, typer.Option(help="At most this share without a recorded answer.")
    ] = 0.10,
    strict: Annotated[
        bool, typer.Option(help="The interval's worse end must keep the limit too.")
    ] = False,
    keep: Annotated[
        bool, typer.Option(help="Keep the replays on the gateway, to look at.")
    ] = False,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Run recorded sessions on other versions; exit 1 when a figure breaks its limit."""
    from gateway.governance.replay_verdict import ReplayLimits, verdict

    out = Output(json=as_json)
    limits = ReplayLimits(
        success_drop=success_drop,
        fallback_rise=fallback_rise,
        latency_rise=latency_rise,
        latency_slack_ms=latency_slack_ms,
        calls_rise=calls_rise,
        equal_least=equal_least,
        uncovered_most=uncovered_most,
        strict=strict,
    )
    _check_words(out, limits, report=report)
    candidates = tuple(one for text in candidate for one in text.split(",") if one)
    asked = _Asked(workflow, candidates, tuple(ignore or ()), keep)
    with connected(out, gateway, token=token) as remote:
        replayed = _replay_all(out, remote, asked=asked, recorded=_recorded(source, limit=limit))
    found = verdict(replayed.pairs, limits)
    _show(out, found, skipped=replayed.skipped, limits=limits)
    if report is not None:
        _keep(out, report, text=_text(found, replayed.skipped, limits=limits))
    if not found.passed:
        raise typer.Exit(Exit.FAILED)


def _check_words(out: Output, limits: "ReplayLimits", *, report: Path | None) -> None:
    """What is no number is no limit: nothing is above it and nothing below. And a place for the
    report is looked at before the work."""
    import msgspec

    with reporting(out):
        check_place("--report", report)
    for name, value in msgspec.structs.asdict(limits).items():
        if isinstance(value, float) and math.isnan(value):
            wrong_use(out, f"--{name.replace('_', '-')}: nan is no limit; write a number")


@dataclass(frozen=True, slots=True)
class _Asked:
    workflow: str
    candidates: tuple[str, ...]
    ignore: tuple[str, ...]
    keep: bool


def _recorded(source: Path, *, limit: int) -> Iterator["Trajectory"]:
    """The recorded sessions, the newest form of each; INVALID_REQUEST where there are none."""
    from acp_spec.bindings.errors import error
    from acp_spec.model.errors import AcpFailure, Reason
    from gateway.stores.reader import FolderUnreadable, TrajectoryReader

    try:
        for number, one in enumerate(TrajectoryReader(source, reviewed_only=False)):
            if limit and number >= limit:
                return
            yield one
    except FolderUnreadable as problem:
        raise AcpFailure(error(Reason.INVALID_REQUEST, f"--from: {problem}")) from None


def _replay_all(
    out: Output, remote: "Gateway", *, asked: _Asked, recorded: Iterator["Trajectory"]
) -> Replayed:
    """All of them, some at once; a batch at a time, so that a long record is never in memory."""
    replayed = Replayed()
    with ThreadPoolExecutor(PARALLEL) as pool, out.progress("replaying") as steps:
        while batch := list(islice(recorded, BATCH)):
            wanted = [one for one in batch if _is_wanted(one, asked, replayed=replayed)]
            for one, result in zip(wanted, pool.map(_runner(remote, asked), wanted), strict=True):
                if isinstance(result, str):
                    replayed.skip(result)
                else:
                    replayed.pairs.append(_pair(one, result, ignore=asked.ignore))
            steps.advance(len(batch))
    return replayed


def _is_wanted(one: "Trajectory", asked: _Asked, *, replayed: Replayed) -> bool:
    """Sessions of this workflow that ran to an end of their own."""
    from acp_spec.model.enums import TERMINAL_SESSION, SessionStatus

    name = asked.workflow.partition("@")[0]
    why = ""
    if one.workflow.partition("@")[0] != name:
        why = "of another workflow"
    elif one.status not in TERMINAL_SESSION or one.status is SessionStatus.CANCELLED:
        why = "cancelled, or not ended"
    elif one.fallback is not None:
        why = "answered by the workflow's rules"
    if why:
        replayed.skip(why)
    return not why


def _runner(remote: "Gateway", asked: _Asked) -> Callable[["Trajectory"], "ReplayResult | str"]:
    """Runs one; a session that cannot be replayed comes back as the reason. What concerns all of
    them (no such version, no gateway) is raised."""
    import msgspec

    from acp_spec.model.errors import AcpFailure, Reason
    from acp_spec.model.payload import payload
    from gateway.runtime.replays import ReplayRequest, ReplayResult

    not_this_one = (Reason.PAYLOAD_TOO_LARGE.value, Reason.OVERLOADED.value)

    def run(one: "Trajectory") -> "ReplayResult | str":
        request = ReplayRequest(
            workflow=asked.workflow,
            candidates=asked.candidates,
            trajectory=payload(msgspec.json.encode(one)),
            keep=asked.keep,
        )
        try:
            return remote.post_and_wait(ReplayResult, "/v1/replays", body=request, wait_s=WAIT_S)
        except AcpFailure as failure:
            if failure.error.reason not in not_this_one:
                raise
            return failure.error.reason

    return run


def _pair(one: "Trajectory", result: "ReplayResult", *, ignore: tuple[str, ...]) -> "ReplayedPair":
    from acp_spec.model.enums import SessionStatus
    from gateway.engine.measures import recorded_sample
    from gateway.governance.comparison import compare
    from gateway.governance.replay_verdict import ReplayedPair
    from gateway.governance.rollout_judging import Sample

    output = bytes(result.output).replace(result.lineage_id.encode(), one.lineage_id.encode())
    output = output.replace(result.session_id.encode(), one.session_id.encode())
    return ReplayedPair(
        recorded=recorded_sample(one),
        replayed=Sample(
            succeeded=result.status is SessionStatus.SUCCEEDED,
            fell_back=result.fell_back,
            work_ms=float(result.work_ms),
        ),
        calls=(len({row.call_id for row in one.calls}), result.calls),
        fields=compare(bytes(one.output), output, ignore=ignore).fields,
        uncovered=bool(result.uncovered),
    )


def _keep(out: Output, report: Path, *, text: bytes) -> None:
    with reporting(out):
        write_file(report, text, option="--report")


def _text(found: "ReplayVerdict", skipped: dict[str, int], *, limits: "ReplayLimits") -> bytes:
    import msgspec

    return msgspec.json.encode({"verdict": found, "skipped": skipped, "limits": limits})


def _show(
    out: Output, found: "ReplayVerdict", *, skipped: dict[str, int], limits: "ReplayLimits"
) -> None:
    """The figures as a table, and the verdict; with --json one document."""
    if out.json:
        out.document(_text(found, skipped, limits=limits))
        return
    out.rows(
        found.figures.values(),
        columns=("figure", "recorded", "replayed", "difference", "95% interval", "limit", ""),
        cells=lambda one: (
            one.name,
            f"{one.recorded:.4g}",
            f"{one.replayed:.4g}",
            f"{one.difference:+.4g}",
            f"{one.interval.low:+.3g} .. {one.interval.high:+.3g}",
            f"{one.limit:+.4g}",
            "ok" if one.passed else "BROKEN",
        ),
    )
    for name, count in sorted(found.fields.items(), key=lambda item: -item[1]):
        out.note(f"{count} x {name} differs")
    for why, count in sorted(skipped.items()):
        out.note(f"{count} x not compared: {why}")
    verdict = "passed" if found.passed else "failed"
    out.note(f"{verdict}: {found.pairs} sessions compared, {found.uncovered} without a record")
