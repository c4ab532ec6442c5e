"""Reading server-sent events, without IO: bytes in, events out, and where to resume.

Only what the gateway sends is understood: `id`, `event`, `data`, `retry` and comments; the rest of
the format is ignored as it demands. A line end may be split between two chunks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from acp_spec.model.gateway_calls import SessionEvent
from acp_spec.model.payload import payload

EVENT_BYTES_MAX = 16 * 1024 * 1024
"""Several times the largest payload a session may carry; a stream beyond it is not a gateway's."""

_LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")


class EventTooLong(ValueError):
    """One event is larger than a gateway sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One dispatched event, as text: `id` is empty for what is no event of the session."""

    id: str
    type: str
    data: bytes

    def event(self) -> SessionEvent:
        """The session event it carries; `data` is passed on byte for byte."""
        return SessionEvent(id=int(self.id), type=self.type or "message", data=payload(self.data))


class EventReader:
    """Feed it chunks; it gives complete frames."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._id = ""
        self._type = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that this chunk completes."""
        self._rest += chunk
        if len(self._rest) + sum(map(len, self._data)) > EVENT_BYTES_MAX:
            raise EventTooLong(f"an event of more than {EVENT_BYTES_MAX} bytes")
        *lines, self._rest = _LINE_END.split(self._rest)
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                yield self._dispatch()
            else:
                self._clear()

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"id":
                self._id = value.decode("utf-8", "replace")
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                self.retry_ms = int(value)
            case _:
                pass  # a comment (heartbeat), or what this reader need not know

    def _dispatch(self) -> Frame:
        frame = Frame(id=self._id, type=self._type, data=b"\n".join(self._data))
        self._clear()
        return frame

    def _clear(self) -> None:
        self._data = []
        self._id = ""
        self._type = ""


def error_text(frame: Frame) -> bytes | None:
    """The ErrorBody of an `error` frame (it has no id), None for any other."""
    if frame.type == "error" and not frame.id:
        try:
            msgspec.json.decode(frame.data)
        except msgspec.DecodeError:
            return b"{}"
        return frame.data
    return None
