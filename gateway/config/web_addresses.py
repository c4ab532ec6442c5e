"""Addresses of other servers that settings name: looked at once, at the start.

What is wrong with one would else be told by a library, hours later and in words of its own. Nothing
here asks the network.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def web_address(url: str) -> str:
    """The same text; raises ValueError that says what to write instead, without the text itself: a
    password may stand in it."""
    form = "write http(s)://host:port, with a port from 1 to 65535"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(form) from None
    is_whole = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not is_whole or re.search(r"\s", url):
        raise ValueError(form)
    return url


def no_or_web_address(url: str) -> str:
    """The same, where an empty text says that there is none."""
    return web_address(url) if url else url


def sendable(given: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    """The same; raises ValueError for what cannot be sent as a header, naming no value."""
    for name, value in given.items():
        if _TOKEN.fullmatch(name) is None:
            raise ValueError(f"{name!r} is no name of a header: letters, digits and dashes")
        if _VALUE.fullmatch(value.get_secret_value()) is None:
            raise ValueError(f"the value of {name} has a line break or another control character")
    return given
