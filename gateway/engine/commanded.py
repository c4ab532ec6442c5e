"""What a session commanded, as one hash: written down at its end, and a replay must come to it.

The commands' text is kept and hashed block by block, most sessions' only once. Sessions of before
behaviour 3 hashed each event's commands by themselves, keyed by the hash before: 18 times in four
calls.
"""

from hashlib import blake2b

import msgspec

from gateway.engine.commands import Command
from gateway.engine.events import Opened

SINCE_BEHAVIOUR = 3
DIGEST_BYTES = 16

BLOCK_BYTES = 2_048
"""Text kept of a live session at most; never changed, as every digest of a longer one depends on
it."""

_encoder = msgspec.json.Encoder()


def after(before: bytes, commands: list[Command], *, opened: Opened) -> bytes:
    """What is kept of all commands, these ones too: equal means equal commands in equal order."""
    if not commands:
        return before
    text = _encoder.encode(commands)
    if opened.behaviour < SINCE_BEHAVIOUR:
        return blake2b(text, digest_size=DIGEST_BYTES, key=before).digest()
    text = before + text
    return text if len(text) <= BLOCK_BYTES else _hash(text)


def digest(kept: bytes, *, opened: Opened) -> str:
    """The hash of all commands, in hex, from what is kept of them."""
    return (kept if opened.behaviour < SINCE_BEHAVIOUR else _hash(kept)).hex()


def _hash(text: bytes) -> bytes:
    return blake2b(text, digest_size=DIGEST_BYTES).digest()
