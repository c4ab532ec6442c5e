"""What the tests of the borders share: a house of services and an application over them."""

import pytest

from gateway.transports.auth import Gate
from gateway.transports.http_app import HttpApp
from gateway.transports.http_routes import HttpLimits
from gateway.transports.streaming import StreamTimes
from gateway.transports.tests.asgi import Client
from gateway.transports.tests.in_memory import House

LOOPBACK = ("localhost", "127.0.0.1")


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def app(house: House) -> HttpApp:
    """Tokens off, as on loopback; small limits."""
    return build_app(house, required=False)


@pytest.fixture
def guarded(house: House) -> HttpApp:
    """Tokens required."""
    return build_app(house, required=True)


@pytest.fixture
def client(app: HttpApp) -> Client:
    return Client(app)


def build_app(house: House, *, required: bool) -> HttpApp:
    gate = Gate(house.services.tokens, required=required, hosts=LOOPBACK, origins=("https://ops",))
    return HttpApp(
        house.services,
        gate,
        limits=HttpLimits(body_bytes=10_000, wait_s=20),
        times=StreamTimes(heartbeat_s=0.05, first_event_s=0.02, stalled_s=0.2),
    )
