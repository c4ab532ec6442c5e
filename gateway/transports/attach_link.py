"""One pair of streams of an attached instance: what is to be written on them, and their end.

The pair ends as a whole: when one of the two ends, when the gateway drains, or when a newer hello
of the same instance takes over.
"""

import asyncio
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.codec import frames
from acp_spec.model.attach import Key
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from acp_spec.sdk.attach_outbox import Outbox

# More than any instance can work on; a peer that grants without end gains nothing by it.
CREDITS_MAX: Final = 10_000
# A peer that speaks and reads nothing is cut before its answers fill the memory.
UNREAD_MAX: Final = 10_000


class Link:
    """Made with the control stream; `attachment_id` leads the calls stream to it."""

    def __init__(self, attachment_id: str) -> None:
        self.attachment_id = attachment_id
        self.control = Outbox(of_gateway=True)
        self.calls = Outbox(of_gateway=True)
        self.has_calls = False
        self.why: AcpError | None = None
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def say(self, said: frames.ControlFromGateway) -> None:
        """Put a frame on the control stream."""
        self.control.put(frames.gateway_control_frame(said))
        if len(self.control) > UNREAD_MAX:
            self.end(_reads_nothing())

    def acknowledge(self, keys: list[Key]) -> None:
        """Put acknowledgements on the calls stream."""
        for key in keys:
            self.calls.put(frames.ack_frame(key))
        if len(self.calls) > UNREAD_MAX + CREDITS_MAX:
            self.end(_reads_nothing())

    def end(self, why: AcpError | None = None) -> None:
        """End both streams; `why` becomes their status."""
        if not self.is_over:
            self.why = why
            self._over.set()

    async def over(self) -> None:
        await self._over.wait()


def _reads_nothing() -> AcpError:
    text = "the component does not read what is written to it"
    return error(Reason.OVERLOADED, text, boundary=Boundary.COMPONENT)
