"""The dashboard's files at `/dashboard`: a fixed set, read on first use, kept with their gzip form.

They are built by `make pages` and hold no data: whatever a page shows it asks for under `/v1`, with
the reader's own token, so the files need none. Names are looked up in a table, never in a folder:
what is not in it does not exist. Nothing here may be loaded before somebody opens the dashboard.
"""

import gzip
import hashlib
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_response import Header, Response
from gateway.transports.ports import Services

INDEX: Final = "index.html"
FILES: Final = {
    INDEX: b"text/html; charset=utf-8",
    "app.js": b"text/javascript; charset=utf-8",
    "app.css": b"text/css; charset=utf-8",
    "icon.svg": b"image/svg+xml",
    "licenses.txt": b"text/plain; charset=utf-8",
}
"""Every file that is served, with its type; a test holds it against the folder."""

# Only what comes from here runs, nothing becomes markup by accident, nobody frames it. A page that
# needs more than this is wrong.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_SECURITY: Final[tuple[Header, ...]] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
# Kept by the browser, asked for again each time by its tag: an upgrade is seen at once.
_CACHE: Final[Header] = (b"cache-control", b"no-cache")
# Below this a compressed body saves no packet.
_COMPRESSED_BYTES_MIN: Final = 1_024


class File(msgspec.Struct, frozen=True, gc=False):
    """One file as it is sent; `packed` is empty where compressing saves nothing."""

    content_type: Header
    etag: bytes
    body: bytes
    packed: bytes


def dashboard_index(services: Services, request: HttpRequest) -> Response:
    """The page itself."""
    return _answer(file(INDEX), request)


def dashboard_file(services: Services, request: HttpRequest) -> Response:
    """One of its files; NOT_FOUND for any other name."""
    name = request.params[0]
    if name not in FILES:
        message = f"the dashboard has no file {name[:100]!r}: open /dashboard"
        raise AcpFailure(error(Reason.NOT_FOUND, message))
    return _answer(file(name), request)


@cache
def file(name: str) -> File:
    """A file of the table, read and compressed once."""
    body = resources.files("gateway.transports").joinpath("dashboard/static", name).read_bytes()
    packed = b""
    if len(body) >= _COMPRESSED_BYTES_MIN:
        packed = gzip.compress(body, mtime=0)
    tag = hashlib.sha256(body).hexdigest()[:32]
    return File((b"content-type", FILES[name]), tag.encode(), body, packed)


def _answer(found: File, request: HttpRequest) -> Response:
    """304 where the browser has it already; compressed where it takes that."""
    zipped = bool(found.packed) and _takes_gzip(request.header("accept-encoding"))
    # Each form is a representation of its own and has a tag of its own (RFC 9110, 8.8.3).
    tag = b'"%s%s"' % (found.etag, b"-gz" if zipped else b"")
    headers = [*_SECURITY, (b"etag", tag), (b"vary", b"accept-encoding")]
    if _is_known(tag, request.header("if-none-match")):
        return Response(304, headers=tuple(headers), cache=_CACHE)
    if zipped:
        headers.append((b"content-encoding", b"gzip"))
    body = found.packed if zipped else found.body
    return Response(200, body, found.content_type, tuple(headers), _CACHE)


def _takes_gzip(accepted: str) -> bool:
    """Whether `accept-encoding` names gzip without refusing it by `q=0`."""
    for part in accepted.lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _is_known(tag: bytes, if_none_match: str) -> bool:
    """Whether the browser holds these very bytes; tags compare weakly (RFC 9110, 13.1.2)."""
    own = tag.decode()
    held = (one.strip().removeprefix("W/") for one in if_none_match.split(","))
    return any(one in (own, "*") for one in held)
