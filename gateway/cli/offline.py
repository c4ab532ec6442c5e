"""Work on the data directory of a gateway that does not run: tokens, and replay of a journal.

The store lets one process in; while the gateway runs these commands say so and change nothing.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.clock import SystemChance, SystemClock
from gateway.runtime.durable import WriteThrough, store_path
from gateway.runtime.tokens import TokenCreated, TokenPage, TokenRequest, Tokens
from gateway.stores.errors import StoreBusy, StoreError
from gateway.stores.ports import Store
from gateway.stores.rocksdb import RocksStore


class TokenPlace(Protocol):
    """Where tokens can be made: a running gateway, or the directory of a stopped one."""

    def create_token(self, request: TokenRequest) -> TokenCreated: ...

    def list_tokens(self) -> TokenPage: ...

    def revoke_token(self, token_id: str) -> None: ...


class Replayed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a replay found; `difference` says where the commands part."""

    session_id: str
    events: int
    commands: int
    same: bool
    difference: str = ""


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


@contextlib.contextmanager
def opened(data_dir: Path) -> Iterator[Store]:
    """The store of a stopped gateway; UNAVAILABLE while one runs on it."""
    try:
        store = RocksStore(store_path(data_dir))
    except StoreBusy:
        message = f"a gateway runs on {data_dir}: use --gateway and a token, or stop it first"
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
