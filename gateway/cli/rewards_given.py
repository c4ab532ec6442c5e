"""`acp rewards give`: judgements from a file to a gateway, many in one request.

Each line is for itself: what is wrong with one is told with its number and keeps no other back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec
import typer

from acp_spec.codec.json import decode_request
from acp_spec.model.errors import AcpError, AcpFailure
from acp_spec.model.gateway_calls import GiveFeedbackRequest
from acp_spec.sdk.cli import Exit, JsonFlag, Output
from gateway.cli.inputs import lines_of
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.portions import portions

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway

LINE_BYTES_MAX: Final = 1 << 20
"""One request carries so much; a long line goes alone."""

EACH: Final = LINE_BYTES_MAX // 500
"""As what a short line counts at least: a gateway takes a thousand at once, and in small pieces."""

TOLD_MAX: Final = 100
"""Refused lines that are told one by one; the others are counted."""


class RefusedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A judgement that was not taken: where it stands, and why."""

    place: str
    session_id: str = ""
    error: AcpError


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a file; `errors` has the first of those that were refused."""

    taken: int
    refused: int
    errors: tuple[RefusedLine, ...]


class _Line(NamedTuple):
    place: str
    size: int
    asked: GiveFeedbackRequest | AcpError


def give(
    file: Annotated[
        Path,
        typer.Argument(help='JSON lines {"session_id": ..., "feedback": {...}}; - for stdin.'),
    ],
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Judge many sessions from a file; lines with a `feedback_id` can be given again."""
    out = Output(json=as_json)
    taken = refused = 0
    errors: list[RefusedLine] = []
    with connected(out, gateway, token=token) as remote, out.progress("judging"):
        every = map(_read, lines_of(file))
        for lines in portions(every, weigh=lambda one: max(one.size, EACH), most=LINE_BYTES_MAX):
            wrong = list(_sent(remote, lines))
            taken += len(lines) - len(wrong)
            refused += len(wrong)
            errors += wrong[: TOLD_MAX - len(errors)]
    found = Given(taken=taken, refused=refused, errors=tuple(errors))
    out.value(found, text="\n".join(_told(found)))
    if refused:
        raise typer.Exit(Exit.FAILED)


def _read(line: tuple[str, bytes]) -> _Line:
    place, data = line
    try:
        asked = decode_request(
            GiveFeedbackRequest, data, max_bytes=LINE_BYTES_MAX, lower_case_enums=True
        )
    except AcpFailure as refused:
        return _Line(place, 0, refused.error)
    return _Line(place, len(data), asked)


def _sent(remote: "Gateway", lines: list[_Line]) -> Iterator[RefusedLine]:
    """Those of the lines that were not taken."""
    from gateway.runtime.judging import JudgedMany
    from gateway.transports.feedback_routes import FeedbackInBulk

    asked: list[tuple[str, GiveFeedbackRequest]] = []
    for place, _, one in lines:
        if isinstance(one, AcpError):
            yield RefusedLine(place=place, error=one)
        else:
            asked.append((place, one))
    if not asked:
        return
    body = FeedbackInBulk(feedback=tuple(one for _, one in asked))
    found = remote.operate(JudgedMany, "POST /v1/feedback", body=body)
    for (place, one), judged in zip(asked, found.results, strict=True):
        if judged.error is not None:
            yield RefusedLine(place=place, session_id=one.session_id, error=judged.error)


def _told(found: Given) -> Iterator[str]:
    for one in found.errors:
        about = f" (session {one.session_id})" if one.session_id else ""
        yield f"{one.place}: {one.error.message}{about}"
    if found.refused > len(found.errors):
        yield f"... and {found.refused - len(found.errors)} more"
    yield f"{found.taken} judgements taken, {found.refused} refused"
