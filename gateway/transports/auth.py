"""Who may come in: Host and Origin for browsers' sake, bearer tokens and scopes for everyone's.

Host and Origin are checked on every request, also while tokens are off: a page in somebody's
browser may reach a loopback port by DNS rebinding, but cannot choose these two headers. A foreign
tenant's id is no matter of this module: the services say NOT_FOUND.
"""

from collections.abc import Iterable
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import AUTHORIZATION, SUPPORTED_VERSIONS, is_supported
from acp_spec.model.errors import AcpFailure, Reason
from gateway.config.binds import Bind
from gateway.config.settings import Settings
from gateway.runtime.principal import LOCAL, Principal, Scope
from gateway.runtime.tokens import Tokens

_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_SCHEMES: Final = ("http://", "https://")
_BEARER: Final = "bearer "
# A header longer than this is no token of ours; hashing it would be work for a stranger.
_AUTHORIZATION_CHARACTERS_MAX: Final = 512


class Gate:
    """The checks that stand before every operation; made once, from the settings."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        required: bool,
        hosts: Iterable[str],
        origins: Iterable[str] = (),
    ) -> None:
        self.required: Final = required
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        # Exact header values seen to be good; bounded by the hosts known times the ports used.
        self._good_hosts: dict[bytes, bool] = {}

    def check_host(self, host: bytes | None) -> None:
        """INVALID_REQUEST without a Host, PERMISSION_DENIED for a name that is not ours."""
        if host in self._good_hosts:
            return
        if not host:
            raise _refusal(Reason.INVALID_REQUEST, "header host: is missing")
        text = host.decode("latin-1").strip().lower()
        if host_name(text) not in self._hosts:
            message = f"header host: {text[:100]!r} is not served here; see http.allowed_hosts"
            raise _refusal(Reason.PERMISSION_DENIED, message)
        if len(self._good_hosts) < 64:
            self._good_hosts[host] = True

    def check_origin(self, origin: bytes | None, host: bytes | None) -> None:
        """PERMISSION_DENIED for a page of another site; a request without Origin is no page's."""
        if origin is None:
            return
        text = origin.decode("latin-1").strip().lower()
        own = (host or b"").decode("latin-1").strip().lower()
        if text in self._origins or text in tuple(scheme + own for scheme in _SCHEMES):
            return
        message = f"header origin: pages of {text[:100]!r} may not call; see http.allowed_origins"
        raise _refusal(Reason.PERMISSION_DENIED, message)

    def caller(self, authorization: str) -> Principal:
        """Who shows this header; UNAUTHENTICATED without a token that is known and valid."""
        if not self.required:
            return LOCAL
        principal = self._tokens.verify(bearer(authorization))
        if principal is None:
            message = "no valid token: send `authorization: Bearer <token>`; `acp tokens create`"
            raise _refusal(Reason.UNAUTHENTICATED, message)
        return principal


def allow(principal: Principal, scope: str) -> None:
    """PERMISSION_DENIED unless the caller holds the scope (an empty one needs a token only)."""
    if scope and not (
        principal.may(scope) or (scope == Scope.COMPONENT and principal.may(Scope.OPERATE))
    ):
        held = ", ".join(sorted(principal.scopes)) or "none"
        message = f"this needs a token with the scope {scope}; yours has {held}"
        raise _refusal(Reason.PERMISSION_DENIED, message)


def check_version(version: str) -> None:
    """VERSION_UNSUPPORTED for a caller that speaks another major version (SPEC section 1)."""
    if not is_supported(version):
        known = ", ".join(SUPPORTED_VERSIONS)
        message = f"acp-version {version[:20]!r} is not spoken here; supported: {known}"
        raise _refusal(Reason.VERSION_UNSUPPORTED, message)


def metadata_of(pairs: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    """The texts beside a gRPC message; a token that comes twice is refused, as over HTTP."""
    texts = [(name, value) for name, value in pairs if isinstance(value, str)]
    if sum(1 for name, _ in texts if name == AUTHORIZATION) > 1:
        message = f"metadata {AUTHORIZATION}: must not be sent twice"
        raise _refusal(Reason.INVALID_REQUEST, message)
    return dict(texts)


def bearer(authorization: str) -> str:
    """The token of an authorization header, empty when it carries none."""
    if len(authorization) > _AUTHORIZATION_CHARACTERS_MAX:
        return ""
    if authorization[: len(_BEARER)].lower() != _BEARER:
        return ""
    return authorization[len(_BEARER) :].strip()


def served_hosts(settings: Settings) -> tuple[str, ...]:
    """Names a Host header may carry: what was configured, the bind's own, and loopback names.

    Loopback names stay in on other binds: a caller on this machine is no browser of a stranger,
    and a stranger's page would need them to resolve to this machine.
    """
    return (*settings.http.allowed_hosts, *_LOOPBACK_NAMES, _name_of(settings.http.bind))


def host_name(host: str) -> str:
    """The name in a Host header, without its port; brackets of IPv6 stay. Empty if malformed."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host
    if not port.isascii() or not port.isdigit():
        return ""
    return name


def _name_of(bind: Bind) -> str:
    return f"[{bind.host}]" if ":" in bind.host else bind.host


def _refusal(reason: Reason, message: str) -> AcpFailure:
    return AcpFailure(error(reason, message))
