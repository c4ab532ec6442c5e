"""API tokens: made once, shown once, kept only as a hash (SPEC section 6, access).

A token is `acp_<id>_<secret>` with 256 random bits of secret, so that one plain SHA-256 is enough
at rest: there is nothing to guess. All rows are held in memory; verifying is a hash and a
comparison that takes the same time wherever the two differ. The secret itself is never written or
logged.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.clock import Chance, Clock
from gateway.runtime.principal import ALL_SCOPES, DEFAULT_TENANT, TOKEN_SUBJECT, Principal, Scope
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.rows import read_row

PREFIX: Final = "acp"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_DAY_MS: Final = 86_400_000
# Every token is held in memory and checked at each start; people and services are fewer.
TOKENS_MAX: Final = 10_000
_NAME_CHARACTERS_MAX: Final = 128
# A token that serves more components than this is one for `*`.
_NAMES_MAX: Final = 100
# A century: later dates than that of the year 9999 have no RFC 3339 form.
_DAYS_MAX: Final = 36_500


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a new token shall be. `names`: components it may serve; `days` 0: until revoked.

    `tenant` left out is the asking caller's own, and `default` for whoever holds the directory.
    """

    scopes: tuple[str, ...]
    tenant: str | None = None
    names: tuple[str, ...] = ()
    label: str = ""
    days: int = 0


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token without its secret, as it is listed."""

    token_id: str
    tenant: str
    scopes: tuple[str, ...]
    names: tuple[str, ...] = ()
    label: str = ""
    created_at_ms: int = 0
    expires_at_ms: int = 0


class TokenCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The one time that the secret is seen."""

    token: str
    info: TokenInfo


class TokenPage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that the caller may see, oldest first."""

    tokens: tuple[TokenInfo, ...] = ()


class TokenTold(Protocol):
    """Told of a change: `by` is the subject of whoever made it."""

    def __call__(self, action: str, info: TokenInfo, *, by: str) -> None: ...


def _nobody(action: str, info: TokenInfo, *, by: str) -> None:
    """Where no audit log is kept."""


class _Row(msgspec.Struct, frozen=True):
    """A token in memory: the digest of the whole token, what it says, and who it makes."""

    digest: bytes
    info: TokenInfo
    principal: Principal


class Tokens:
    """The tokens of one gateway. `durable` is the only way a row is written.

    With `tenant` a method sees that tenant's tokens only, as every caller of the API does;
    without it all of them, as whoever holds the data directory does.
    """

    def __init__(self, store: Store, durable: Durable, *, clock: Clock, chance: Chance) -> None:
        self._durable = durable
        self._clock = clock
        self._chance = chance
        self._rows: dict[str, _Row] = {}
        self.told: TokenTold = _nobody
        """Hears of every token made and revoked, in the same batch; the assembly puts the audit log
        here."""
        for digest, value in store.scan(Table.TOKEN, b""):
            self._keep(digest, read_row(Table.TOKEN, (digest, value), kind=TokenInfo))

    def __len__(self) -> int:
        return len(self._rows)

    def verify(self, token: str) -> Principal | None:
        """The caller that this token makes, or None: unknown, revoked and expired look alike."""
        row = self._rows.get(_id_of(token))
        digest = _digest(token)
        if row is None or not hmac.compare_digest(digest, row.digest):
            return None
        expires_at_ms = row.info.expires_at_ms
        if expires_at_ms and self._clock.now_ms() >= expires_at_ms:
            return None
        return row.principal

    async def create(
        self, request: TokenRequest, *, tenant: str | None = None, by: str = "gateway"
    ) -> TokenCreated:
        """Make a token; answered once it is durable. INVALID_REQUEST, PERMISSION_DENIED."""
        owner = tenant or DEFAULT_TENANT if request.tenant is None else request.tenant
        _check(request, owner)
        if tenant not in (None, owner):
            raise _foreign(tenant)
        if len(self._rows) >= TOKENS_MAX:
            raise invalid_request(f"there are {TOKENS_MAX} tokens already: revoke some")
        token_id = self._chance.random_bytes(_ID_BYTES).hex()
        secret = base64.urlsafe_b64encode(self._chance.random_bytes(_SECRET_BYTES)).decode()
        token = f"{PREFIX}_{token_id}_{secret.rstrip('=')}"
        now_ms = self._clock.now_ms()
        info = TokenInfo(
            token_id=token_id,
            tenant=owner,
            scopes=tuple(sorted(set(request.scopes))),
            names=request.names,
            label=request.label,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.days * _DAY_MS if request.days else 0,
        )
        digest = _digest(token)
        self._durable.put(Table.TOKEN, digest, msgspec.json.encode(info))
        self.told("token.created", info, by=by)
        await self._durable.synced()
        self._keep(digest, info)
        return TokenCreated(token=token, info=info)

    def list(self, *, tenant: str | None = None) -> tuple[TokenInfo, ...]:
        """Tokens without their secrets, oldest first."""
        rows: Iterable[_Row] = self._rows.values()
        seen = (row.info for row in rows if tenant in (None, row.info.tenant))
        return tuple(sorted(seen, key=lambda info: info.created_at_ms))

    async def revoke(
        self, token_id: str, *, tenant: str | None = None, by: str = "gateway"
    ) -> None:
        """End a token at once; the row is gone from disk on return. Raises NOT_FOUND."""
        row = self._rows.get(token_id)
        if row is None or tenant not in (None, row.info.tenant):
            message = f"no token {token_id!r}: `acp tokens list` shows their ids"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        del self._rows[token_id]
        self._durable.delete(Table.TOKEN, row.digest)
        self.told("token.revoked", row.info, by=by)
        await self._durable.synced()

    def _keep(self, digest: bytes, info: TokenInfo) -> None:
        principal = Principal(
            tenant=info.tenant,
            scopes=frozenset(info.scopes),
            names=info.names,
            subject=subject_of(info),
        )
        self._rows[info.token_id] = _Row(digest, info, principal)


def subject_of(info: TokenInfo) -> str:
    """How the caller who shows this token is called."""
    return f"{TOKEN_SUBJECT}{info.token_id}"


def _foreign(tenant: str | None) -> AcpFailure:
    message = (
        f"tenant: this caller makes tokens of {tenant!r} only;"
        " those of other tenants are made with `acp tokens create --data-dir`"
    )
    return AcpFailure(error(Reason.PERMISSION_DENIED, message))


def _check(request: TokenRequest, owner: str) -> None:
    if not request.scopes:
        raise invalid_request(f"scopes: name at least one of {', '.join(Scope)}")
    unknown = sorted(set(request.scopes) - ALL_SCOPES)
    if unknown:
        raise invalid_request(f"scopes: {unknown[0]!r} is none of {', '.join(Scope)}")
    for place, text in (("tenant", owner), ("label", request.label)):
        if len(text) > _NAME_CHARACTERS_MAX or not text.isprintable():
            raise invalid_request(f"{place}: at most {_NAME_CHARACTERS_MAX} printable characters")
    if not owner:
        raise invalid_request(
            f"tenant: must not be empty ({DEFAULT_TENANT!r} where there is only one)"
        )
    if request.names and Scope.COMPONENT not in request.scopes:
        raise invalid_request("names: only a token with the scope component serves components")
    if len(request.names) > _NAMES_MAX or not all(map(_is_name, request.names)):
        raise invalid_request(f"names: at most {_NAMES_MAX} names of components, or '*'")
    if not 0 <= request.days <= _DAYS_MAX:
        raise invalid_request(f"days: must be 0 (until revoked) to {_DAYS_MAX}")


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _NAME_CHARACTERS_MAX and text.isprintable()


def _id_of(token: str) -> str:
    prefix, _, rest = token.partition("_")
    return rest.partition("_")[0] if prefix == PREFIX else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
