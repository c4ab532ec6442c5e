"""The contract's section `rates`: how often a workflow may call an action (R11).

    rates:
      ledger.fee: {per_second: 50, burst: 10}
      rates.convert: {per_second: 5, on_excess: refuse}   # degrade at once, do not wait

One token bucket per workflow and action, whatever its version, beside those that operators and
cards state for everybody. Siblings of one shape: a frozen value and `read(reader, found)`.
"""

from typing import Final

from gateway.expressions.field_reader import Field, FieldReader
from gateway.governance.rules import (
    PER_SECOND_LEAST,
    PER_SECOND_MOST,
    OnExcess,
    RateRules,
)

KEYS: Final = ("per_second", "burst", "on_excess", "max_waiting")
BURST_MOST: Final = 1_000_000
WAITING_MOST: Final = 10_000_000
LINES_MAX: Final = 1_000

ActionRates = dict[str, RateRules]


def read(reader: FieldReader, found: Field) -> ActionRates:
    """The section; what is wrong in it is noted in `reader`."""
    fields = reader.fields(found.value, found.path, known=None)
    if len(fields) > LINES_MAX:
        reader.fault(found, f"at most {LINES_MAX} actions can be listed")
    return {name: _rate(reader, one) for name, one in list(fields.items())[:LINES_MAX]}


def _rate(reader: FieldReader, found: Field) -> RateRules:
    fields = reader.fields(found.value, found.path, known=KEYS)
    if "per_second" not in fields:
        reader.fault(found, "say how many calls a second: {per_second: 50}")
    return RateRules(
        per_second=reader.number(
            fields.get("per_second"), 1.0, least=PER_SECOND_LEAST, most=PER_SECOND_MOST
        ),
        burst=reader.integer(fields.get("burst"), 1, least=1, most=BURST_MOST),
        on_excess=reader.choice(fields.get("on_excess"), OnExcess) or OnExcess.WAIT,
        max_waiting=reader.integer(fields.get("max_waiting"), 1_024, least=0, most=WAITING_MOST),
    )
