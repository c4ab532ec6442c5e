"""Structured logs: one JSON object per line on standard error, with the ids of its session.

`log = get_log(__name__)`, then `log.info("session_ended", status="FAILED")`: an event name and
fields, no sentences glued together. `bound(session_id=..., lineage_id=...)` adds fields to every
line below it. What looks like a secret is masked here, once, whoever wrote it; a payload never
belongs in a log. The libraries' own lines pass through the same formatter.
"""

import contextvars
import json
import logging
import re
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

from gateway.telemetry.masking import DEFAULT, MASK, Masker

LogValue = str | int | float | bool | None
Fields = Mapping[str, LogValue]

# A line is read by people and by collectors that cut at 16 KiB.
VALUE_CHARACTERS_MAX = 2_000
TRACEBACK_CHARACTERS_MAX = 8_000
FIELDS_ATTRIBUTE = "acp_fields"

SECRET_NAME = re.compile(
    r"token|secret|password|passwd|authorization|api_?key|cookie|credential", re.IGNORECASE
)
_bound: contextvars.ContextVar[Fields] = contextvars.ContextVar("acp_log_fields")


class EventLog:
    """A logger of one module that takes event names and fields."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: LogValue) -> None:
        """For whoever hunts a fault; never in a hot path without need."""
        self._write(logging.DEBUG, event, fields=fields)

    def info(self, event: str, **fields: LogValue) -> None:
        """Something an operator wants to see that went as it should."""
        self._write(logging.INFO, event, fields=fields)

    def warning(self, event: str, **fields: LogValue) -> None:
        """A peer or the world failed; the gateway copes."""
        self._write(logging.WARNING, event, fields=fields)

    def error(self, event: str, *, cause: BaseException | None = None, **fields: LogValue) -> None:
        """The gateway itself failed; `cause` adds its traceback."""
        self._write(logging.ERROR, event, fields=fields, cause=cause)

    def _write(
        self, level: int, event: str, *, fields: Fields, cause: BaseException | None = None
    ) -> None:
        if self._logger.isEnabledFor(level):
            merged = {**_bound.get({}), **fields}
            self._logger.log(level, event, exc_info=cause, extra={FIELDS_ATTRIBUTE: merged})


class JsonFormatter(logging.Formatter):
    """One line of JSON per record: time, level, logger, event, then the fields."""

    def __init__(self, masker: Masker = DEFAULT) -> None:
        super().__init__()
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, masked and bounded."""
        fields: Fields = getattr(record, FIELDS_ATTRIBUTE, {})
        line: dict[str, LogValue] = {
            "time": _rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": self._masker.text(record.getMessage())[:VALUE_CHARACTERS_MAX],
        }
        line.update(
            {name: mask(name, value, masker=self._masker) for name, value in fields.items()}
        )
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = "".join(traceback.format_exception(record.exc_info[1]))
            line["traceback"] = self._masker.text(text)[-TRACEBACK_CHARACTERS_MAX:]
        return json.dumps(line, ensure_ascii=False)


def get_log(name: str) -> EventLog:
    """The log of one module; pass `__name__`."""
    return EventLog(logging.getLogger(name))


@contextmanager
def bound(**fields: LogValue) -> Generator[None]:
    """Add fields to every line written inside, in this task and those it starts."""
    token = _bound.set({**_bound.get({}), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def configure_logs(level: str, stream: TextIO, *, masker: Masker = DEFAULT) -> None:
    """Send every logger of this process to `stream` as JSON lines; call once, at the start."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(masker))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
    # One line per request and per HTTP call is what metrics are for.
    for name in ("uvicorn.access", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def mask(name: str, value: LogValue, *, masker: Masker = DEFAULT) -> LogValue:
    """The value as it may be written under that name."""
    if not isinstance(value, str):
        return value  # a figure such as tokens=12 is no secret
    if value and (SECRET_NAME.search(name) or masker.named(name)):
        return MASK
    return masker.text(value)[:VALUE_CHARACTERS_MAX]


def _rfc3339(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
