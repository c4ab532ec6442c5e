"""What a pass of the archive is told, and what it tells: one JSON line each."""

import msgspec


class ArchiveOrder(msgspec.Struct, frozen=True, kw_only=True):
    """On standard input: no secret is in an argument list. `now_ms`: the gateway's clock.

    `hot_days`, `keep_days`: whole days after the day on which a file was written; `keep_days` 0:
    for ever. `erase`: sessions whose content must go. `check`: read all of the archive and heal
    what can be.
    """

    log_dir: str
    records_dir: str
    work_dir: str
    url: str
    options: dict[str, str] = {}
    gateway_id: str
    now_ms: int
    hot_days: int
    keep_days: int = 0
    erase: tuple[str, ...] = ()
    check: bool = False
    lock_wait_s: float = 30.0


class Moved(msgspec.Struct, frozen=True, kw_only=True, tag="moved"):
    """A file has left the hot tier; it lies in the archive, read back and compared."""

    file: str
    raw_bytes: int
    stored_bytes: int
    lines: int


class Erased(msgspec.Struct, frozen=True, kw_only=True, tag="erased"):
    """Nothing of these sessions is in the archive."""

    session_ids: tuple[str, ...]


class Expiring(msgspec.Struct, frozen=True, kw_only=True, tag="expiring"):
    """Retention takes this file next. The pass waits for an empty line on standard input: the
    gateway first erases those sessions of it of which nothing newer is known.
    """

    file: str
    before: str
    session_ids: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True, kw_only=True, tag="dropped"):
    """A file whose time was over has been taken away."""

    file: str


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag="checked"):
    """A file of the archive was read; `healed`: one of its forms was damaged and made again."""

    file: str
    healed: bool = False


class Trouble(msgspec.Struct, frozen=True, kw_only=True, tag="trouble"):
    """What did not go, in words for a person. The pass goes on where it can."""

    what: str


class Over(msgspec.Struct, frozen=True, kw_only=True, tag="over"):
    """The pass has ended. `files`: how many lie in the archive. `waiting`: files that are old
    enough but not fed to the records yet.
    """

    files: int
    waiting: int = 0


Said = Moved | Erased | Expiring | Dropped | Checked | Trouble | Over
