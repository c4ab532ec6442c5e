"""The hash by which rows and payloads are compared."""

import hashlib
from typing import Final

_HASH_BYTES: Final = 8


def hash_of(data: bytes) -> int:
    """64 bits that tell two values apart."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=_HASH_BYTES).digest(), "big")
