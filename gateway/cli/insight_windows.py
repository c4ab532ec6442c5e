"""Windows as a person writes them, and the records of a folder sorted into them.

`since=2026-11-01,until=2026-11-08T12:00:00Z,workflow=hotline,component=fees@1.2.0`: all parts
optional (`tenant`, too), `component` repeatable. What is left out is counted with its reason.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.cli import Output

if TYPE_CHECKING:
    import numpy as np

    from acp_spec.model.trajectory import Trajectory
    from gateway.insight.windows import LeftOut, Window

EXAMPLE = "since=2026-11-01,until=2026-11-08T12:00:00Z,workflow=hotline,component=fees@1.2.0"
_UNUSED = {
    "torn": "lines that are torn",
    "malformed": "lines that are malformed",
    "quarantined": "records of a newer version, which a newer `acp` reads",
}
"""What a reader counted, in a person's words."""

RECORDS = "records"
INSTALL = "pip install 'acp-decision-gateway[insight]'"


def window(text: str, option: str, *, workflow: str = "", tenant: str = "") -> "Window":
    """What `text` means, `workflow` where it names none; INVALID_REQUEST says why it is none."""
    from gateway.insight.windows import Window

    times: dict[str, int] = {}
    named = {"workflow": workflow, "tenant": tenant}
    versions: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition("=")
        if name in ("since", "until"):
            times[f"{name}_ms"] = _time_ms(value, option)
        elif name in named and value:
            named[name] = value
        elif name == "component" and all(value.partition("@")):
            component, _, versions[component] = value.partition("@")
        else:
            _refuse(f"{option}: {part!r} is no part of a window such as {EXAMPLE}")
    return Window(
        since_ms=times.get("since_ms"),
        until_ms=times.get("until_ms"),
        versions=versions,
        **named,
    )


def _time_ms(text: str, option: str) -> int:
    from acp_spec.model.times import parse_rfc3339

    found = parse_rfc3339(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None:
        _refuse(f"{option}: {text!r} is no time such as 2026-11-29 or 2026-11-29T15:00:00Z")
    return found


def _refuse(message: str) -> NoReturn:
    raise AcpFailure(error(Reason.INVALID_REQUEST, message))


class Sessions(Protocol):
    """Recorded sessions, read once and counted."""

    def __iter__(self) -> Iterator["Trajectory"]: ...

    def leave_out(self, why: str) -> None:
        """Count one that is not used."""

    def tell(self, out: Output) -> None:
        """What was not used, for the person."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where sessions are read: a folder or file, or without one (or `records`) the records of a
    gateway. `rules`: a file to score them by, which takes whole trajectories."""

    place: str
    gateway: str
    token: str
    rules: Path | None = None

    @contextlib.contextmanager
    def opened(
        self, windows: "Sequence[Window]", *, by_end: bool = False, with_parts: bool = False
    ) -> "Iterator[Sessions]":
        """The sessions that these windows can hold. INVALID_REQUEST."""
        if self.place not in ("", RECORDS):
            yield Records(Path(self.place), self.rules)
            return
        if self.rules is not None:
            _refuse("--rules: scoring again takes whole trajectories: name them with --from DIR")
        from gateway.cli.insight_records import GatewayRecords
        from gateway.cli.remote import Gateway

        with Gateway(self.gateway, self.token) as remote:
            yield GatewayRecords(remote, windows, by_end=by_end, with_parts=with_parts)


@dataclass(slots=True)
class Records:
    """The newest form of each session in a folder, with rewards, read once and counted.

    Those that wait for a review count too: they happened. `rules`: a file to score all of them by.
    """

    source: Path
    rules: Path | None = None
    left_out: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator["Trajectory"]:
        import msgspec

        from acp_spec.model.trajectory import Rewards
        from gateway.cli.rewards_history import rules_in
        from gateway.rewards.scoring import Scorer
        from gateway.stores.reader import FolderUnreadable, TrajectoryReader

        scorer = Scorer(rules_in(self.rules) if self.rules else None)
        reader = TrajectoryReader(self.source, reviewed_only=False)
        try:
            for one in reader:
                if scorer.rules is None and one.rewards != Rewards():
                    yield one
                else:
                    yield msgspec.structs.replace(one, rewards=scorer.score(one))
        except FolderUnreadable as problem:
            _refuse(f"--from: {problem}")
        if reader.counts.elsewhere:
            self.left_out[f"archive at {reader.counts.elsewhere}: copy it here to read it"] = 1
        if reader.counts.expired_before:
            taken = f"retention that took the days before {reader.counts.expired_before}"
            self.left_out[taken] = 1
        for kind, said in _UNUSED.items():
            if count := getattr(reader.counts, kind):
                self.left_out[said] = count

    def leave_out(self, why: str) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def tell(self, out: Output) -> None:
        """What was not used, for the person."""
        for why, count in sorted(self.left_out.items()):
            out.note(f"{count} x left out: {why}")


def sorted_into(
    records: Sessions, windows: "tuple[Window, Window]", *, out: Output
) -> "Iterator[tuple[int, Trajectory]]":
    """Each session with the window that it belongs to: 0 the baseline, 1 the new one."""
    with out.progress("reading") as steps:
        for one in records:
            steps.advance()
            reasons = [each.left_out(one) for each in windows]
            if None not in reasons:
                records.leave_out(_why(reasons))
            elif reasons == [None, None]:
                _refuse(f"the windows overlap: session {one.session_id} is in both")
            else:
                yield reasons.index(None), one


def _why(reasons: "list[LeftOut | None]") -> str:
    """The most particular of them."""
    from gateway.insight.windows import LeftOut

    return next(
        (one.value for one in reasons if one and one is not LeftOut.OTHER), LeftOut.OTHER.value
    )


def generator(seed: int) -> "np.random.Generator":
    """Chance that the seed makes anew each time; UNIMPLEMENTED says what to install for it."""
    try:
        import numpy as np
    except ImportError:
        raise AcpFailure(error(Reason.UNIMPLEMENTED, f"this needs numpy: {INSTALL}")) from None
    return np.random.default_rng(seed)
