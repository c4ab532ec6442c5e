"""What a policy may say about an attempt: admit it, put it off, refuse it (architecture idea 4)."""

import msgspec

from acp_spec.model.errors import AcpError


class Admit(msgspec.Struct, frozen=True):
    """Nothing stands in the way."""


class Defer(msgspec.Struct, frozen=True):
    """Not now. `key`: whose queue it waits in. `until_ms`: when that queue's head is to be asked
    again, by the row's clock; 0: as soon as something is given back there."""

    policy: str
    key: str = ""
    until_ms: float = 0


class Refuse(msgspec.Struct, frozen=True):
    """Not at all: the error says why and whether later may help."""

    policy: str
    error: AcpError


Verdict = Admit | Defer | Refuse

ADMIT = Admit()
