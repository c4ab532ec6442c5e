"""`acp records export | import | forget`: copies of sessions, from and into data directories.

An export only reads, also beside a gateway that runs. An import writes into the trajectory log,
which has one writer: it works on the directory of a stopped gateway, and so does forgetting.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.stores.archive.object_store import ObjectStore
    from gateway.stores.copies.importing import ImportReport, Target
    from gateway.stores.copies.log_lines import LogLines
    from gateway.stores.copies.manifest import ExportManifest, Selection
    from gateway.stores.ports import Store

Config = Annotated[
    Path | None,
    typer.Option(help="The gateway's settings, where its archive needs options or credentials."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="NAME=VALUE of the URL's file system; repeatable."),
]


def export_records(
    to: Annotated[str, typer.Option("--to", help="An empty directory, or a URL: s3://bucket/x.")],
    data_dir: Annotated[
        Path, typer.Option("--from", help="The gateway's data directory; it may be running.")
    ],
    since: Annotated[str, typer.Option(help="Opened then or later: 2026-11-29[T15:00:00Z].")] = "",
    until: Annotated[str, typer.Option(help="Opened before then.")] = "",
    workflow: Annotated[str, typer.Option(help="NAME or NAME@VERSION.")] = "",
    tenant: Annotated[str, typer.Option(help="Only this tenant's.")] = "",
    form: Annotated[str, typer.Option("--format", help="jsonl (zstd) or parquet.")] = "jsonl",
    config: Config = None,
    option: Options = None,
    as_json: JsonFlag = False,
) -> None:
    """Copy the newest line of each session, originals byte for byte, secrets and all."""
    import msgspec

    from acp_spec.model.times import rfc3339
    from gateway.runtime.clock import SystemClock
    from gateway.stores.copies.exporting import Exporting
    from gateway.stores.copies.manifest import Form

    out = Output(json=as_json)
    with _working(out) as work, out.progress("reading the log") as steps:
        if form not in (one.value for one in Form):
            _refuse(f"--format: {form!r} is neither jsonl nor parquet")
        _check_from(data_dir, to)
        exporting = Exporting(
            _lines_of(data_dir, work, settings=_settings(data_dir, config)),
            _store(to, option),
            form=Form(form),
            selection=_selection(since, until, workflow=workflow, tenant=tenant),
            work=work,
        )
        exporting.tell = steps.advance
        made = exporting.run(rfc3339(SystemClock().now_ms()))
    named = {**msgspec.structs.asdict(made), "files": len(made.files)}
    out.value({"to": to, **named}, text=_exported(made, to))
    if made.damaged:
        raise typer.Exit(Exit.FAILED)


def import_records(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Directory or URL of an export.")],
    into: Annotated[
        Path, typer.Option("--into", help="A stopped gateway's data directory, or a new one.")
    ],
    config: Config = None,
    option: Options = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring an export's sessions into a data directory; again changes nothing."""
    from gateway.cli.offline import opened
    from gateway.runtime.clock import SystemClock
    from gateway.stores.copies.importing import Importing, manifest_at

    out = Output(json=as_json)
    with _working(out) as work:
        settings = _settings(into, config)
        export = _store(source, option)
        manifest = manifest_at(export, work)
        with (
            opened(into, instead="") as store,
            out.progress("importing", total=manifest.sessions) as steps,
        ):
            target = _target(into, store, work=work, settings=settings)
            importing = Importing(export, target, work=work, tell=steps.advance)
            report = importing.run(manifest, SystemClock().now_ms())
    out.value(report, text=_imported(report))
    if report.damaged or report.quarantined:
        raise typer.Exit(Exit.FAILED)
    if report.differ:
        raise typer.Exit(Exit.CONFLICT)


def forget_records(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help="Imported ones.")],
    data_dir: Annotated[
        Path, typer.Option("--from", help="The data directory of the stopped gateway.")
    ],
    config: Config = None,
    as_json: JsonFlag = False,
) -> None:
    """Delete imported sessions, which a running gateway does not know (its own it does)."""
    from gateway.cli.offline import opened
    from gateway.runtime.clock import SystemClock
    from gateway.stores.copies.forgetting import forget

    out = Output(json=as_json)
    with _working(out) as work:
        settings = _settings(data_dir, config)
        _check_log(data_dir)
        with opened(data_dir, instead="") as store:
            target = _target(data_dir, store, work=work, settings=settings)
            report = forget(target, sessions, now_ms=SystemClock().now_ms())
    lines = [f"{one}: deleted" for one in report.forgotten]
    missing = [f"{one}: no line of it is there" for one in report.not_there]
    out.value(report, text="\n".join([*lines, *missing]))
    if report.not_there:
        raise typer.Exit(Exit.NOT_FOUND)


def _target(into: Path, store: "Store", *, work: Path, settings: "Settings") -> "Target":
    from gateway.assembly.archiving import RECORDS_FOLDER
    from gateway.stores.copies.importing import Target
    from gateway.stores.records.feed import ASIDE_FILE
    from gateway.stores.trajectory_log import FOLDER, TrajectoryLog

    rotation = settings.outbox
    log = TrajectoryLog(
        into / FOLDER, rotate_bytes=rotation.rotate_bytes, rotate_ms=rotation.rotate_ms
    )
    lines = _lines_of(into, work, settings=settings)
    return Target(store=store, log=log, lines=lines, aside=into / RECORDS_FOLDER / ASIDE_FILE)


# ---- places --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _working(out: Output) -> Iterator[Path]:
    """A directory for what is unpacked; failures inside become a message and an exit code."""
    from gateway.stores.archive.manifest import ManifestUnreadable
    from gateway.stores.copies.exporting import PlaceTaken
    from gateway.stores.copies.forgetting import OwnSession
    from gateway.stores.copies.importing import TargetDamaged
    from gateway.stores.copies.manifest import ExportUnreadable

    reasons: dict[type[Exception], Reason] = {
        PlaceTaken: Reason.ALREADY_EXISTS,
        ExportUnreadable: Reason.INVALID_REQUEST,
        OwnSession: Reason.INVALID_REQUEST,
        TargetDamaged: Reason.DATA_LOSS,
        ManifestUnreadable: Reason.DATA_LOSS,
        OSError: Reason.UNAVAILABLE,
    }
    with reporting(out), tempfile.TemporaryDirectory(prefix="acp-records-") as work:
        try:
            yield Path(work)
        except tuple(reasons) as problem:
            reason = next(reasons[kind] for kind in type(problem).__mro__ if kind in reasons)
            raise AcpFailure(error(reason, str(problem), boundary=Boundary.CLIENT)) from None


def _settings(data_dir: Path, config: Path | None) -> "Settings":
    from gateway.config.load import SettingsError, load_settings

    try:
        flags: dict[str, object] = {"data_dir": data_dir}
        return load_settings(environ=os.environ, file=config, flags=flags).settings
    except SettingsError as problem:
        _refuse("\n".join(f"settings: {found}" for found in problem.problems))


def _lines_of(data_dir: Path, work: Path, *, settings: "Settings") -> "LogLines":
    """Both tiers. The archive is where the log says, unless the settings name another place."""
    from gateway.assembly.archiving import archive_options
    from gateway.stores.copies.log_lines import LogLines

    options = archive_options(settings)
    return LogLines(data_dir, work, archive_url=settings.archive.url, archive_options=options)


def _store(url: str, options: list[str] | None) -> "ObjectStore":
    from gateway.stores.archive.object_store import open_store

    named = dict(_option(text) for text in options or ())
    return open_store(url, named)


def _option(text: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not (name and is_pair):
        _refuse(f"--option: {text!r} is not NAME=VALUE")
    return name, value


def _check_from(data_dir: Path, to: str) -> None:
    """There is a log, and the copy does not land in it, where readers would take it for more."""
    from gateway.stores.archive.object_store import is_directory

    _check_log(data_dir)
    target = Path(to.removeprefix("file://")).resolve()
    if is_directory(to) and target.is_relative_to(data_dir.resolve()):
        _refuse(f"--to: {to} is inside the data directory: name a place of its own")


def _check_log(data_dir: Path) -> None:
    from gateway.stores.trajectory_log import FOLDER

    log_dir = data_dir / FOLDER
    if not log_dir.is_dir():
        message = f"there is no {log_dir}: --from takes the data directory of a gateway"
        raise AcpFailure(error(Reason.NOT_FOUND, message, boundary=Boundary.CLIENT))


def _selection(since: str, until: str, *, workflow: str, tenant: str) -> "Selection":
    from gateway.stores.copies.manifest import Selection

    return Selection(
        since_ms=_time_ms(since, "--since"),
        until_ms=_time_ms(until, "--until"),
        workflow=workflow,
        tenant=tenant,
    )


def _time_ms(text: str, option: str) -> int | None:
    from acp_spec.model.times import parse_rfc3339

    if not text:
        return None
    found = parse_rfc3339(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None:
        _refuse(f"{option}: {text!r} is no time such as 2026-11-29 or 2026-11-29T15:00:00Z")
    return found


def _refuse(message: str) -> NoReturn:
    raise AcpFailure(error(Reason.INVALID_REQUEST, message, boundary=Boundary.CLIENT))


# ---- words ---------------------------------------------------------------------------------------


def _exported(made: "ExportManifest", to: str) -> str:
    from gateway.stores.copies.manifest import MANIFEST

    text = (
        f"{made.sessions} sessions in {len(made.files)} files in {to}:"
        f" {made.raw_bytes} bytes of lines, {made.stored_bytes} stored\n"
        f"left out: {made.erased} erased sessions, {made.unreadable} lines that are no trajectory\n"
        "secrets are in it as they were, and a deletion in the gateway does not reach it:"
        f" {MANIFEST} names its sessions"
    )
    return "\n".join([text, *(f"not read: {why}" for why in made.damaged)])


def _imported(report: "ImportReport") -> str:
    counts = (
        f"{report.imported} sessions imported, {report.there_already} there already,"
        f" {report.older} older than what is there, {report.erased} erased there,"
        f" {report.differ} with other content, {report.quarantined} lines put aside"
    )
    lines = [
        counts,
        *(f"other content at the same sequence, left as it is: {one}" for one in report.differing),
        *(f"put aside: {one}" for one in report.aside),
        *(f"damaged: {one}" for one in report.damaged),
    ]
    if report.damaged:
        lines.append("fetch what is damaged again, then import again: the rest is there already")
    return "\n".join(lines)
