"""What the records child is told at its start, and what it answers."""

import msgspec


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One line on standard input: the key is in no argument list that others can read.

    `url`: a cluster to feed, instead of the embedded engine. `password`: that cluster's.
    `archive_url`, `archive_options`: where the files are that have left the log. `gateway_id`:
    whose log it is, as gateways may share a cluster. `look_every_ms`: how often is looked whether
    that cluster is still the one that was fed.
    """

    log_dir: str
    records_dir: str
    key: str
    url: str = ""
    password: str = ""
    tick_ms: int = 80
    verify_every_ms: int = 0
    lock_wait_s: float = 30.0
    log_level: str = "info"
    secret_fields: tuple[str, ...] = ()
    secret_patterns: dict[str, str] = {}
    archive_url: str = ""
    archive_options: dict[str, str] = {}
    gateway_id: str = ""
    look_every_ms: int = 15_000


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """One line on standard output, once questions can be asked."""

    port: int
    pid: int
