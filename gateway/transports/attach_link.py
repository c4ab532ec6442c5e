"""One pair of streams of an attached instance: what is to be written on them, and their end.

The pair ends as a whole: when one of the two ends, when the gateway drains, or when a newer hello
of the same instance takes over.
"""

import asyncio

from acp_spec.codec import frames
from acp_spec.model.errors import AcpError
from acp_spec.sdk.attach_outbox import Outbox


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

    def end(self, why: AcpError | None = None) -> None:
        """End both streams; `why` becomes their status."""
        if not self.is_over:
            self.why = why
            self._over.set()

    async def over(self) -> None:
        await self._over.wait()
