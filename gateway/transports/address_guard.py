"""Which component URLs may be called, and which literal address is dialled for them.

The rule (SPEC section 6, outbound): the gateway resolves a name itself, checks every address it got
against the allow-list, and dials an address that it checked; nobody resolves again in between, so a
name that changes its mind (DNS rebinding) gains nothing. Nothing here opens a connection.
"""

import asyncio
import enum
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from gateway.config.binds import PORT_MAX
from gateway.config.networks import Network, is_allowed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""`await resolve(host, port)` gives literal addresses; raises OSError if there is none."""

# Longer ones are mistakes; RFC 9110 recommends to support at least 8000 bytes for a whole URI.
URL_MAX: Final = 2_048
# A name with more addresses than this is not one component instance.
ADDRESSES_MAX: Final = 16

# Cloud metadata services give credentials to whoever asks from inside. A wide network in the
# allow-list never includes them; naming the very address does. Most stand in the link-local
# network, where no component has an address for long; the others are each cloud's own.
METADATA: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle
        "100.100.100.200",  # Alibaba
        "fd00:ec2::/64",  # AWS: ::254, ::23
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
    )
)
_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")

_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BASE: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")


class AddressRefused(ValueError):
    """A URL or an address that the gateway does not call; the message says what to change."""


class Scheme(enum.Enum):
    HTTP = "http"
    HTTPS = "https"
    GRPC = "grpc"
    GRPCS = "grpcs"


TLS_SCHEMES: Final = frozenset({Scheme.HTTPS, Scheme.GRPCS})
HTTP_SCHEMES: Final = frozenset({Scheme.HTTP, Scheme.HTTPS})
GRPC_SCHEMES: Final = frozenset({Scheme.GRPC, Scheme.GRPCS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A component URL, taken apart. `base` is "" or "/path" without a slash at its end."""

    scheme: Scheme
    host: str
    port: int
    base: str = ""

    @property
    def is_tls(self) -> bool:
        """True if the connection is encrypted and the certificate must name `host`."""
        return self.scheme in TLS_SCHEMES

    @property
    def authority(self) -> str:
        """`host:port` as the Host header and `:authority` say it."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        """The normal form of the URL: equal targets have equal text."""
        return f"{self.scheme.value}://{self.authority}{self.base}"


def parse_component_url(url: str, schemes: frozenset[Scheme]) -> Target:
    """Take `scheme://host:port[/base]` apart; raises AddressRefused with what to write instead."""
    wanted = " or ".join(sorted(f"{s.value}://host:port" for s in schemes))
    if len(url) > URL_MAX or not url.isascii() or any(c <= " " or c in '\\"<>\x7f' for c in url):
        raise AddressRefused(f"the url has characters that do not belong there: write {wanted}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused(f"{url!r}: {error}; write {wanted}") from None
    scheme = next((s for s in schemes if s.value == parts.scheme), None)
    if scheme is None:
        raise AddressRefused(f"{url!r} begins with {parts.scheme or 'no scheme'!r}: write {wanted}")
    if "@" in parts.netloc:
        raise AddressRefused(
            "the url holds a user or password: name a credential in `auth` instead"
        )
    if "?" in url or "#" in url:
        raise AddressRefused(f"{url!r} has a query or fragment: write {wanted} and a path at most")
    if port is None or not 0 < port <= PORT_MAX:
        raise AddressRefused(f"{url!r} has no usable port (1 to {PORT_MAX}): write {wanted}")
    return Target(
        scheme=scheme,
        host=_host(parts.hostname or "", url),
        port=port,
        base=_base(parts.path, scheme, url=url),
    )


def _base(path: str, scheme: Scheme, *, url: str) -> str:
    base = path.rstrip("/")
    if base and scheme in GRPC_SCHEMES:
        raise AddressRefused(f"{url!r}: a gRPC url has no path, write grpc://host:port")
    if not _BASE.fullmatch(base) or any(part in (".", "..") for part in base.split("/")):
        raise AddressRefused(f"{url!r}: the path may not have empty, '.' or '..' parts")
    return base


def _host(host: str, url: str) -> str:
    """The host in lower case; an address in its one canonical form."""
    if ":" in host:
        return str(_ipv6(host, url))
    labels = host.removesuffix(".").split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        # 127.1, 0x7f.1 and 2130706433 are read as addresses by some resolvers: one form only.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise AddressRefused(
                f"{url!r}: write an IPv4 address as four decimal numbers, such as 127.0.0.1"
            ) from None
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused(f"{url!r} has no valid host name: write it as in DNS, in ASCII")
    return host


def _ipv6(host: str, url: str) -> Address:
    if "%" in host:
        raise AddressRefused(f"{url!r}: an IPv6 zone has a meaning on one machine only, leave it")
    try:
        return unmapped(ipaddress.IPv6Address(host))
    except ValueError:
        raise AddressRefused(f"{url!r} has no valid IPv6 address in its brackets") from None


def unmapped(address: Address) -> Address:
    """The IPv4 address that an IPv4-mapped IPv6 address is, else the address itself."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


async def resolve_by_system(host: str, port: int) -> tuple[str, ...]:
    """The system's resolver, in a thread; each address once, in its order."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos))


class AddressGuard:
    """The allow-list, applied to every address at every resolution."""

    def __init__(
        self, networks: Iterable[Network], *, resolve: Resolver = resolve_by_system
    ) -> None:
        self._networks = tuple(networks)
        self._resolve = resolve

    async def addresses(self, target: Target) -> tuple[str, ...]:
        """Literal addresses that may be dialled for `target`, at least one.

        Raises AddressRefused if any address of the name is not allowed, OSError if the name does
        not resolve.
        """
        try:
            return (self._checked(ipaddress.ip_address(target.host), target),)
        except AddressRefused:
            raise
        except ValueError:
            pass  # a name
        texts = await self._resolve(target.host, target.port)
        if not texts:
            raise OSError(f"{target.host} has no address")
        if len(texts) > ADDRESSES_MAX:
            raise AddressRefused(
                f"{target.host} has {len(texts)} addresses, at most {ADDRESSES_MAX}:"
                " register each instance by itself"
            )
        return tuple(self._checked(ipaddress.ip_address(text), target) for text in texts)

    def _checked(self, address: Address, target: Target) -> str:
        plain = unmapped(address)
        named = str(plain) if target.host == str(plain) else f"{target.host} ({plain})"
        if not is_allowed(str(plain), self._networks):
            raise AddressRefused(
                f"{named} is in no network of outbound.allow"
                f" ({', '.join(map(str, self._networks)) or 'empty'}): add it there if it is yours"
            )
        if plain.is_unspecified or plain.is_multicast:
            raise AddressRefused(f"{named} is not the address of a machine")
        if _is_metadata(plain) and not self._is_named(plain):
            raise AddressRefused(
                f"{named} is a cloud metadata service: outbound.allow must name that very address"
            )
        return str(plain)

    def _is_named(self, address: Address) -> bool:
        return any(n.num_addresses == 1 and address in n for n in self._networks)


def _is_metadata(address: Address) -> bool:
    return any(meaning in network for meaning in _meanings(address) for network in METADATA)


def _meanings(address: Address) -> set[Address]:
    """The address, and the IPv4 addresses that a translator would make of it."""
    meanings = {address}
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in one for one in (*_NAT64, _IPV4_COMPATIBLE)):
            meanings.add(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.sixtofour is not None:
            meanings.add(address.sixtofour)
        meanings.update(address.teredo or ())
    return meanings


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
