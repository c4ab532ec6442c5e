"""Bounds that a decoded value must keep; msgspec and the proto converters both check them.

They hold where a message is read, not where one is built in Python: a decoder pays nothing for
them, and both bindings refuse the same values. A negative count or an empty id never enters.
"""

from typing import Annotated

import msgspec

INT64_MAX = (1 << 63) - 1

NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
"""A name or id: absent and empty are the same mistake, on both bindings."""

Count = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
"""How many, how long (`_ms`), how much: never negative, fits the wire's int64."""

AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)]
"""An attempt number, a line, a time left: counting begins at 1."""

Signed = Annotated[int, msgspec.Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]
"""An integer that may be negative (priority); fits the wire's int64."""
