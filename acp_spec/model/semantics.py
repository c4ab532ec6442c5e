"""What became of a value that has a declared domain (mission R13): told in events and records.

A value is looked up once, where it enters; what was found rides on the event, so that nobody has to
look it up again. `REFUSED` values stand here too: their record says what was not understood.
"""

import msgspec

from acp_spec.model.enums import Word


class HowMapped(Word):
    """By which rule a value came into its domain, the surest first."""

    EXACT = "EXACT"
    FOLDED = "FOLDED"
    SYNONYM = "SYNONYM"
    NEAREST = "NEAREST"
    REFUSED = "REFUSED"


class MappedValue(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    rename={"from_": "from"},
):
    """One value that was not in its domain as it came. `at`: JSON Pointer within the payload.

    `confidence` is 1 but for NEAREST and REFUSED, where it is that of the nearest value; `to` is
    empty for REFUSED.
    """

    at: str
    domain: str
    from_: str
    to: str = ""
    how: HowMapped
    confidence: float = 1.0
