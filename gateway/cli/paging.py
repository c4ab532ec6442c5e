"""Keyset pages, one after another, so that a list of any length starts printing at once."""

from collections.abc import Iterator
from typing import Final

from acp_spec.model.session import SessionPage, SessionView
from gateway.cli.remote import Gateway

PAGE: Final = 200


def sessions_of(
    gateway: Gateway, *, limit: int, status: str = "", workflow: str = ""
) -> Iterator[SessionView]:
    """Sessions as the gateway lists them, newest first, at most `limit` (0: all).

    A page may be shorter than asked for, even empty: only one without `next` is the last.
    """
    after, left = "", limit
    while True:
        size = min(PAGE, left) if limit else PAGE
        page = gateway.ask(
            SessionPage,
            "list_sessions",
            status=status,
            workflow=workflow,
            after=after,
            limit=str(size),
        )
        yield from page.sessions
        left -= len(page.sessions)
        after = page.next
        if not after or (limit and left <= 0):
            return
