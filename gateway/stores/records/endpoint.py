"""Where a ClickHouse is, and who asks: the embedded one's loopback port, or a cluster's URL."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

_PORTS: Final = {"http": 8123, "https": 8443}
_ASKED = re.compile(r"host='([^']*)', port=(\d+)\)")


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


def told(problem: Exception) -> str:
    """What a client's error says, for people: its own words name the request, which is another one
    each time, and hide the cause behind three names of classes."""
    asked = _ASKED.search(str(problem))
    why = [one.strerror or str(one) for one in _causes(problem) if isinstance(one, OSError)]
    if asked is None or not why:
        return str(problem)
    return f"no ClickHouse answers at {asked[1]}:{asked[2]}: {why[-1]}"


def _causes(problem: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = problem
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
