"""What an export says of itself: its objects with checksums and counts, and the sessions in them.

One manifest for all of it, put last: an export without it is one that was cut off. The sessions are
named so that whoever keeps a copy can delete from it. Pure but for names.
"""

import re
from typing import Final

import msgspec

from acp_spec.model.enums import Word
from gateway.stores.archive.manifest import PACKED, TABLE, LineOf, StoredObject
from gateway.stores.archive.object_store import PART

MANIFEST: Final = "export.manifest.json"
BEGUN: Final = "export.begun.json"
"""Says that what lies here without a manifest is of an export that was cut off, and may go."""

FORMAT: Final = 1
_OURS: Final = re.compile(r"date=\d{4}-\d\d-\d\d/\d{4,}\.(?:jsonl\.zst|parquet)(?:\.part)?")


class Form(Word):
    """How the lines are kept; either gives them back byte for byte."""

    JSONL = "jsonl"
    PARQUET = "parquet"


SUFFIX_OF: Final = {Form.JSONL: PACKED, Form.PARQUET: TABLE}


class Selection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which sessions: `since_ms <= opened < until_ms`, of a workflow (name or name@version), of a
    tenant. Empty: any.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    workflow: str = ""
    tenant: str = ""

    def takes(self, *, opened_ms: int, workflow: str, tenant: str) -> bool:
        """Whether a session belongs to it."""
        return (
            (self.since_ms is None or opened_ms >= self.since_ms)
            and (self.until_ms is None or opened_ms < self.until_ms)
            and self.workflow in ("", workflow, workflow.partition("@")[0])
            and self.tenant in ("", tenant)
        )


class CopiedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One object. `raw_*`: of the JSON lines in it. `date`: the day on which they were written."""

    date: str
    stored: StoredObject
    raw_bytes: int
    raw_sha256: str
    lines: int
    schema_versions: dict[str, int]
    first_sequence: int
    last_sequence: int
    sessions: tuple[LineOf, ...]


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`erased`: sessions of the log that are left out because they were deleted. `unreadable`:
    lines that are no trajectory. `damaged`: archived files that could not be read, and why.
    """

    format: int = FORMAT
    form: Form
    written_at: str
    selection: Selection = Selection()
    sessions: int
    raw_bytes: int
    stored_bytes: int
    erased: int = 0
    unreadable: int = 0
    damaged: tuple[str, ...] = ()
    files: tuple[CopiedFile, ...]


class ExportUnreadable(ValueError):
    """There is no whole export of a version that this one knows; says what to do."""


def decode(data: bytes) -> ExportManifest:
    """Raises ExportUnreadable."""
    try:
        found = msgspec.json.decode(data, type=_Head)
        if found.format > FORMAT:
            why = f"written by a newer version (format {found.format}): a newer one reads it"
            raise ExportUnreadable(f"{MANIFEST}: {why}")
        told = msgspec.json.decode(data, type=ExportManifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        why = f"{problem}: export again, or fetch it again from where it came"
        raise ExportUnreadable(f"{MANIFEST}: {why}") from None
    for file in told.files:
        if not is_ours(file.stored.name):
            why = f"{file.stored.name!r} is no name that an export gives: it is not one of ours"
            raise ExportUnreadable(f"{MANIFEST}: {why}")
    return told


def object_name(date: str, number: int, *, form: Form) -> str:
    return f"date={date}/{number:04d}{SUFFIX_OF[form]}"


def is_ours(name: str) -> bool:
    """Whether an export may have put this object."""
    own = (MANIFEST, BEGUN)
    return name.removesuffix(PART) in own or _OURS.fullmatch(name) is not None


class _Head(msgspec.Struct):
    format: int
