"""Scoring recorded sessions again, and means over them: reads a directory, writes one file beside.

What was is never touched: the file is made under another name, and one that is there already with
other bytes is left as it is.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.enums import FeedbackKind
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.reward_vector import RulesRef
from acp_spec.model.times import parse_rfc3339, rfc3339
from acp_spec.model.trajectory import Trajectory
from gateway.cli.workflow_source import read_text
from gateway.rewards.decay_fit import DecayFit, fit
from gateway.rewards.decay_samples import sample_of
from gateway.rewards.means import Mean, Means, Rate, Rates
from gateway.rewards.rescoring import KnownBy, rescored
from gateway.rewards.review_draw import Drawn, candidate_of, draw
from gateway.rewards.rules import RewardRules
from gateway.rewards.rules_file import parse_rules
from gateway.stores.reader import FolderUnreadable, TrajectoryReader
from gateway.stores.trajectory_log import FOLDER as TRAJECTORIES

FOLDER: Final = "rewards"
_PART: Final = ".part"


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """What a run made. `sha256` of the file: the same inputs give the same."""

    rules: RulesRef
    as_of: str
    sessions: int
    not_known_yet: int
    unusable: int
    file: str
    sha256: str
    is_new: bool
    means: tuple[Mean, ...]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Means of vectors as they were recorded, and rates of feedback that was drawn."""

    sessions: int
    without_rules: int
    means: tuple[Mean, ...]
    rates: tuple[Rate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be scored. `to`: the file; by default below the directory, named by its inputs."""

    source: Path
    rules: RewardRules
    as_of_ms: int | None = None
    to: Path | None = None


def rules_in(file: Path) -> RewardRules:
    """INVALID_REQUEST with every fault of the file."""
    found = parse_rules(read_text(file).encode())
    if not isinstance(found, RewardRules):
        lines = (f"{file}:{p.line}:{p.column}: {p.path}: {p.message}" for p in found)
        raise invalid_request("\n".join(lines))
    return found


def time_of(text: str) -> int | None:
    """None for an empty text; INVALID_REQUEST for one that is no time."""
    found = parse_rfc3339(text) if text else None
    if text and found is None:
        raise invalid_request(f"--as-of: {text!r} is not RFC 3339, such as 2026-11-29T15:00:00Z")
    return found


def rescore(wanted: Wanted) -> Rescored:
    """Score every session as it was known at the time; ALREADY_EXISTS for another file there."""
    known = KnownBy(wanted.as_of_ms)
    reader = TrajectoryReader(wanted.source, newest_only=False, reviewed_only=False)
    for trajectory in every(reader):
        known.look(trajectory)
    target = wanted.to or _default_file(wanted, rfc3339(known.time_ms))
    _refuse_inside(wanted.source, target)
    made = _Made()
    part = target.with_name(f"{target.name}.{os.getpid()}{_PART}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            for trajectory in filter(known.takes, every(reader)):
                file.write(made.line(trajectory, wanted.rules, as_of_ms=known.time_ms))
            file.flush()
            os.fsync(file.fileno())
        is_new = _put_beside(part, target, sha256=made.sha256)
    except OSError as problem:
        raise invalid_request(f"--to {target}: cannot be written: {problem}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    counts = reader.counts
    return Rescored(
        rules=wanted.rules.ref,
        as_of=rfc3339(known.time_ms),
        sessions=made.sessions,
        not_known_yet=known.not_known_yet,
        unusable=counts.torn + counts.malformed + counts.quarantined,
        file=str(target),
        sha256=made.sha256,
        is_new=is_new,
        means=made.means.rows,
    )


class _Made:
    """What has been written so far."""

    def __init__(self) -> None:
        self.means = Means()
        self.sessions = 0
        self._digest = hashlib.sha256()

    def line(self, trajectory: Trajectory, rules: RewardRules, *, as_of_ms: int) -> bytes:
        row = rescored(trajectory, rules, as_of_ms=as_of_ms)
        self.means.add(row.workflow, row.vector)
        self.sessions += 1
        line = msgspec.json.encode(row) + b"\n"
        self._digest.update(line)
        return line

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def figures(source: Path) -> Figures:
    """Of the newest record of each session."""
    means, rates = Means(), Rates()
    sessions = without = 0
    for trajectory in every(TrajectoryReader(source, reviewed_only=False)):
        sessions += 1
        rates.add(trajectory)
        made = trajectory.rewards.vector
        if made is None:
            without += 1
        else:
            means.add(trajectory.workflow, made)
    return Figures(sessions=sessions, without_rules=without, means=means.rows, rates=rates.rows)


def decay(source: Path, *, signal: FeedbackKind, label: FeedbackKind, good_from: float) -> DecayFit:
    """How fast the signals lose their meaning for the label, over the newest records."""
    found = (
        sample_of(trajectory, signal=signal, label=label, good_from=good_from)
        for trajectory in every(TrajectoryReader(source))
    )
    return fit(one for one in found if one is not None)


def drawn(source: Path, *, count: int, seed: str) -> tuple[Drawn, ...]:
    """Sessions for people to judge, over the newest records."""
    found = map(candidate_of, every(TrajectoryReader(source, reviewed_only=False)))
    return draw([one for one in found if one is not None], count, seed=seed)


def kind_of(text: str, option: str) -> FeedbackKind:
    """INVALID_REQUEST for a word that is no kind of feedback."""
    try:
        return FeedbackKind(text.upper())
    except ValueError:
        known = ", ".join(kind.value for kind in FeedbackKind)
        raise invalid_request(f"{option}: {text!r} is not one of {known}") from None


def every(reader: TrajectoryReader) -> Iterator[Trajectory]:
    """NOT_FOUND where there is nothing to read."""
    try:
        yield from reader
    except FolderUnreadable as problem:
        raise AcpFailure(error(Reason.NOT_FOUND, str(problem))) from None


def _default_file(wanted: Wanted, as_of: str) -> Path:
    """Beside the trajectories of a data directory, named by its inputs."""
    if not (wanted.source / TRAJECTORIES).is_dir():
        raise invalid_request(f"{wanted.source} is no data directory: say where with --to FILE")
    ref = wanted.rules.ref
    name = f"{ref.name}-{ref.version}-{ref.digest[:12]}-{as_of.replace(':', '')}.jsonl"
    return wanted.source / FOLDER / name


def _refuse_inside(source: Path, target: Path) -> None:
    """Rows among the records would be read as records by the next run."""
    root = source / TRAJECTORIES if (source / TRAJECTORIES).is_dir() else source
    if target.resolve().is_relative_to(root.resolve()):
        raise invalid_request(f"--to {target}: lies among the records that are read; write beside")


def _put_beside(part: Path, target: Path, *, sha256: str) -> bool:
    """True: it is new there. A file with the same bytes may be there already."""
    try:
        os.link(part, target)  # unlike a rename it never replaces what another run has made
    except FileExistsError:
        with target.open("rb") as there:
            if hashlib.file_digest(there, "sha256").hexdigest() == sha256:
                return False
        message = f"{target} is there with other rows: name another file with --to"
        raise AcpFailure(error(Reason.ALREADY_EXISTS, message)) from None
    return True
