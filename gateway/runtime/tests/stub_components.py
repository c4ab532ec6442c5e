"""Components for tests of the registry: cards at URLs, connections that answer questions only."""

from acp_spec.bindings.errors import error
from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Action, Card, Health
from acp_spec.model.enums import Effect, HealthStatus, Role, Transport
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from gateway.runtime.connection import Connection, Outgoing, Sink
from gateway.runtime.registered import Endpoint


def card(
    name: str = "ledger",
    version: str = "1.0.0",
    *,
    description: str = "",
    roles: tuple[Role, ...] = (),
) -> Card:
    """A valid card; `description` makes another digest."""
    action = Action(
        name="balance",
        description=description,
        effect=Effect.READ,
        input_schema=payload(b'{"type":"object"}'),
    )
    return Card(name=name, version=version, roles=roles or (Role.EXECUTOR,), actions=(action,))


class StubConnection:
    """Answers describe and health as the stub at its URL says."""

    def __init__(self, components: "StubComponents", url: str) -> None:
        self.components = components
        self.url = url
        self.is_closed = False

    async def describe(self, timeout_ms: int) -> Card:
        found = self.components.cards.get(self.url)
        if found is None:
            raise AcpFailure(error(Reason.UNAVAILABLE, f"no connection to {self.url}"))
        return found

    async def health(self, timeout_ms: int) -> Health:
        self.components.asked.append(self.url)
        found = self.components.healths.get(self.url)
        if isinstance(found, Reason):
            raise AcpFailure(error(found, "no health"))
        return found or Health(status=HealthStatus.SERVING)

    async def close(self) -> None:
        self.is_closed = True

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        raise AssertionError("the registry calls nobody")

    def reset(self, call_id: str, attempt: int) -> None:
        raise AssertionError("the registry calls nobody")

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        raise AssertionError("the registry calls nobody")

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        raise AssertionError("the registry calls nobody")

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        raise AssertionError("the registry calls nobody")


class StubComponents:
    """A dialer whose network is two tables: the card and the health at each URL."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.healths: dict[str, Health | Reason] = {}
        self.opened: list[StubConnection] = []
        self.asked: list[str] = []

    def normal_url(self, url: str, transport: Transport) -> str:
        if not url.startswith("http://"):
            raise ValueError(f"{url!r}: write http://host:port")
        return url.rstrip("/").lower()

    def open(self, endpoint: Endpoint) -> Connection:
        connection = StubConnection(self, endpoint.url)
        self.opened.append(connection)
        return connection

    def serve(self, url: str, served: Card) -> str:
        self.cards[url] = served
        return url
