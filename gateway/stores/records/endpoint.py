"""Where a ClickHouse is, and who asks: the embedded one's loopback port, or a cluster's URL."""

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

_PORTS: Final = {"http": 8123, "https": 8443}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`is_remote`: over a network, where packing pays."""

    host: str
    port: int
    user: str = "default"
    password: str = ""
    scheme: str = "http"
    is_remote: bool = False


def endpoint_of(url: str, password: str = "") -> Endpoint:
    """The endpoint of `http(s)://user:password@host:port`. Raises ValueError saying what is wrong.

    `password` holds where the URL names none: a URL is shown in places, a secret should not be.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url.partition('@')[2] or url!r}: write http(s)://user@host:port")
    return Endpoint(
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        user=unquote(parts.username or "default"),
        password=unquote(parts.password or "") or password,
        scheme=parts.scheme,
        is_remote=parts.hostname not in ("127.0.0.1", "localhost", "::1"),
    )
