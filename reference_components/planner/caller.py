"""Who calls, and what is on file for them: `hotline/customers.json`, its numbers as they stand.

Values are JSON text throughout, because 12.50 must reach the ledger as 12.50.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from acp_spec.codec.json_text import find
from acp_spec.model.calls import PlanRequest
from acp_spec.model.payload import is_absent

CALLER_DEFAULT = "ada"
"""A call is hers unless the session says whose it is."""


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    record: bytes

    def value(self, path: str) -> bytes | None:
        """The JSON text at a path such as `foreign_payment.amount`; None when not on file."""
        return find(self.record, "/" + path.replace(".", "/"))

    def text(self, path: str) -> str:
        """The string at a path, empty when there is none."""
        value = self.value(path)
        decoded = msgspec.json.decode(value) if value else ""
        return decoded if isinstance(decoded, str) else ""


def caller_of(request: PlanRequest) -> Caller:
    """By the session's label `customer`, else the member `customer` of its input, else the default.

    A name that is not on file is a caller without a record: nothing can be filled in for them.
    """
    stated = None if is_absent(request.input) else find(bytes(request.input), "/customer")
    named = msgspec.json.decode(stated) if stated else ""
    name = request.context.labels.get("customer") or (named if isinstance(named, str) else "")
    name = name or CALLER_DEFAULT
    return Caller(name, find(_customers(), f"/{_escaped(name)}") or b"{}")


@cache
def _customers() -> bytes:
    return (files("reference_components.hotline") / "customers.json").read_bytes()


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
