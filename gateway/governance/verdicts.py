"""What a policy may say about an attempt: admit it, put it off, refuse it (architecture idea 4)."""

import msgspec

from acp_spec.model.errors import AcpError


class Admit(msgspec.Struct, frozen=True):
    """Nothing stands in the way."""


class Defer(msgspec.Struct, frozen=True):
    """Not now. `until_ms` 0: until something is given back. `key`: whose queue it waits in."""

    policy: str
    key: str = ""
    until_ms: int = 0


class Refuse(msgspec.Struct, frozen=True):
    """Not at all: the error says why and whether later may help."""

    policy: str
    error: AcpError


Verdict = Admit | Defer | Refuse

ADMIT = Admit()
