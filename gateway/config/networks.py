"""Networks of the outbound allow-list; parsed here, asked by whoever is about to dial.

An IPv4 address that hides in an IPv6 one (::ffff:10.0.0.1) is judged as the IPv4 address it is.
"""

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOPBACK_NETWORKS: tuple[Network, ...] = (
    ipaddress.IPv4Network("127.0.0.0/8"),
    ipaddress.IPv6Network("::1/128"),
)


def parse_network(value: object) -> Network:
    """Read `10.0.0.0/8`, or one address; raises ValueError that says what to write instead."""
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    try:
        return ipaddress.ip_network(str(value))
    except ValueError as error:
        raise ValueError(f"{error}: write a network such as 10.0.0.0/8 or an address") from None


def is_allowed(address: str, networks: Iterable[Network]) -> bool:
    """True if the literal address lies in one of the networks; anything else is False."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in networks)
