"""Addresses the gateway listens on: parsed once, so that nobody else takes `host:port` apart.

Port 0 means "any free port". A bind is loopback only if no machine but this one can reach it; a
name other than `localhost` never counts as loopback, since what it resolves to may change.
"""

import ipaddress
from dataclasses import dataclass

PORT_MAX = 65_535


@dataclass(frozen=True, slots=True)
class Bind:
    """One listening address; `str()` gives back the text it was read from."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bind(value: object) -> Bind:
    """Read `host:port` or `[v6]:port`; raises ValueError that says what to write instead."""
    if isinstance(value, Bind):
        return value
    if not isinstance(value, str):
        raise ValueError("write an address such as 127.0.0.1:8080")
    host, colon, port_text = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port_text.isascii() or not port_text.isdigit():
        raise ValueError(f"{value!r} is no address: write host:port, such as 127.0.0.1:8080")
    if ":" in host and not value.startswith("["):
        raise ValueError(f"{value!r}: put an IPv6 address in brackets, such as [::1]:8080")
    port = int(port_text)
    if port > PORT_MAX:
        raise ValueError(f"port {port} is over {PORT_MAX}; 0 takes any free port")
    return Bind(host, port)
