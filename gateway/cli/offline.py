"""Work on the data directory of a gateway that does not run: tokens, and replay of a journal.

The store lets one writer in: while the gateway runs, making tokens here is refused. Reading is not.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.engine.catalog import Catalog
from gateway.engine.events import AnyEvent, Opened
from gateway.engine.replay import Replayed, check
from gateway.runtime.clock import SystemChance, SystemClock
from gateway.runtime.tokens import TokenCreated, TokenPage, TokenRequest, Tokens
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import WriteThrough, store_path
from gateway.stores.errors import KeyGone, RecordError, StoreBusy, StoreError
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store
from gateway.stores.rocksdb import RocksStore


class TokenPlace(Protocol):
    """Where tokens can be made: a running gateway, or the directory of a stopped one."""

    def create_token(self, request: TokenRequest) -> TokenCreated: ...

    def list_tokens(self) -> TokenPage: ...

    def revoke_token(self, token_id: str) -> None: ...


class _OfflineTokens:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def create_token(self, request: TokenRequest) -> TokenCreated:
        return asyncio.run(self._tokens.create(request))

    def list_tokens(self) -> TokenPage:
        return TokenPage(tokens=self._tokens.list())

    def revoke_token(self, token_id: str) -> None:
        asyncio.run(self._tokens.revoke(token_id))


@contextlib.contextmanager
def offline_tokens(data_dir: Path) -> Iterator[TokenPlace]:
    """The tokens in that directory, which is made if it is not there yet."""
    with opened(data_dir) as store:
        tokens = Tokens(store, WriteThrough(store), clock=SystemClock(), chance=SystemChance())
        yield _OfflineTokens(tokens)


def replayed(data_dir: Path, session_id: str) -> Replayed:
    """Replay a session's journal as it is on disk now, also of a gateway that runs."""
    with opened(data_dir, read_only=True) as store:
        events = _events(store, session_id)
        workflows = Workflows(store, WriteThrough(store), clock=SystemClock(), catalog=Catalog)
        digest = events[0].workflow_digest if isinstance(events[0], Opened) else ""
        return check(events, workflows.by_digest(digest) if digest else None)


def _events(store: Store, session_id: str) -> list[AnyEvent]:
    """Every event of the session; NOT_FOUND without a journal, or once it was erased."""
    try:
        events = [event for _, event in read_events(store, Sealer(store), session_id=session_id)]
    except KeyGone:
        events = []
    except RecordError as problem:
        raise AcpFailure(error(Reason.DATA_LOSS, str(problem))) from None
    if not events:
        message = f"there is no journal of a session {session_id!r} (was it deleted?)"
        raise AcpFailure(error(Reason.NOT_FOUND, message))
    return events


@contextlib.contextmanager
def opened(
    data_dir: Path, *, read_only: bool = False, instead: str = "use --gateway and a token, or "
) -> Iterator[Store]:
    """The store of a stopped gateway; UNAVAILABLE while one runs on it, unless only read.

    `instead`: what else the command could be told, for commands that can.
    """
    try:
        store = RocksStore(store_path(data_dir), read_only=read_only)
    except StoreBusy:
        message = f"a gateway runs on {data_dir}: {instead}stop it first"
        raise _unavailable(message) from None
    except StoreError as problem:
        raise _unavailable(str(problem)) from None
    try:
        yield store
    except StoreError as problem:
        raise _unavailable(str(problem)) from None
    finally:
        store.close()


def _unavailable(message: str) -> AcpFailure:
    return AcpFailure(error(Reason.UNAVAILABLE, message, boundary=Boundary.GATEWAY))
