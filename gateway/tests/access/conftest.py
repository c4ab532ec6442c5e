"""A real gateway that demands tokens, though only loopback reaches it, and tokens of every kind.

Tokens are made before it starts, as an administrator would with `acp tokens create --data-dir`.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.cli.offline import opened
from gateway.runtime.clock import Clock, ManualClock, SystemChance, SystemClock
from gateway.runtime.tokens import TokenCreated, TokenRequest, Tokens
from gateway.stores.durable import WriteThrough
from gateway.tests.asking import Asker
from gateway.tests.e2e.stranger import Stranger, serving
from gateway.tests.served import Served, serve_gateway

SCOPES = ("submit", "operate", "component", "annotate", "admin")
MINE, THEIRS = "mine", "theirs"
GUARDED = {"ACP_AUTH_MODE": "required"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """The gateway, and the secrets of its tokens by what they are for."""

    served: Served
    tokens: Mapping[str, TokenCreated]

    def token(self, name: str) -> str:
        return self.tokens[name].token

    def asker(self) -> Asker:
        return Asker(http=self.served.http, grpc_address=self.served.grpc)


def requests() -> dict[str, TokenRequest]:
    """One token per scope, one without any other's, and everything for each of two tenants."""
    every = {scope: TokenRequest(scopes=(scope,), tenant=MINE) for scope in SCOPES}
    for tenant in (MINE, THEIRS):
        every[tenant] = TokenRequest(scopes=SCOPES, tenant=tenant)
    every["fees"] = TokenRequest(scopes=("component",), names=("fees",))
    every["any"] = TokenRequest(scopes=("component",), names=("*",))
    every["revoked"] = TokenRequest(scopes=SCOPES, tenant=MINE)
    every["short"] = TokenRequest(scopes=SCOPES, tenant=MINE, days=1)
    return every


def made(
    data_dir: Path, asked: Mapping[str, TokenRequest], clock: Clock
) -> dict[str, TokenCreated]:
    """These tokens, written into the directory of a gateway that does not run."""

    async def make() -> dict[str, TokenCreated]:
        with opened(data_dir) as store:
            tokens = Tokens(store, WriteThrough(store), clock=clock, chance=SystemChance())
            return {name: await tokens.create(request) for name, request in asked.items()}

    return asyncio.run(make())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One gateway that demands tokens, for all tests of a module."""
    folder = tmp_path_factory.mktemp("guarded")
    data_dir = folder / "data"
    tokens = made(data_dir, requests(), SystemClock())
    two_days_ago = ManualClock(SystemClock().now_ms() - 2 * 86_400_000)
    tokens |= made(data_dir, {"expired": requests()["short"]}, two_days_ago)
    served = serve_gateway(data_dir=data_dir, log_file=folder / "gateway.log", environ=GUARDED)
    yield Guarded(served, tokens)
    assert served.stop() == 0


@pytest.fixture(scope="module")
def asker(guarded: Guarded) -> Iterator[Asker]:
    with guarded.asker() as one:
        yield one


@pytest.fixture(scope="module")
def stranger() -> Iterator[Callable[[Stranger], Stranger]]:
    """`stranger(Stranger(card, answers))` serves it until the module's tests have ended."""
    with ExitStack() as stack:
        yield lambda one: stack.enter_context(serving(one))
