"""Who calls, and as part of which trace: what a border learned about a request.

The tenant comes from the caller's token only, never from what the request says. A border makes
these values once; everything behind it trusts them and looks at no header.
"""

import enum
from typing import Final

import msgspec


class Scope(enum.StrEnum):
    """What a token may do. ADMIN includes the others."""

    SUBMIT = "submit"
    OPERATE = "operate"
    COMPONENT = "component"
    ANNOTATE = "annotate"
    ADMIN = "admin"


ALL_SCOPES: frozenset[str] = frozenset(Scope)
DEFAULT_TENANT = "default"

TOKEN_SUBJECT: Final = "token:"
"""Begins the subject of whoever showed a token; the token's id follows."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A caller that proved who it is. `names`: the components a COMPONENT token may serve."""

    tenant: str
    scopes: frozenset[str]
    names: tuple[str, ...] = ()
    subject: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether the subject is a token's: with tokens off everybody is the same caller."""
        return self.subject.startswith(TOKEN_SUBJECT)

    def may(self, scope: str) -> bool:
        """Whether one of the scopes held allows what `scope` stands for."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def may_serve(self, component: str) -> bool:
        """Whether this caller may register and keep a component of that name.

        Operators may serve every name; others those their token lists (`*` stands for all).
        """
        return self.may(Scope.OPERATE) or component in self.names or "*" in self.names


LOCAL = Principal(tenant=DEFAULT_TENANT, scopes=ALL_SCOPES, names=("*",), subject="local")
"""Every caller while tokens are off; the gateway is then bound to loopback (settings see to it)."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The W3C trace headers of a request, as they came; empty when there were none."""

    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""


NO_TRACE = Trace()
