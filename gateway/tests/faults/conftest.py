"""One gateway per module that takes only small answers, and a town for its peers."""

from collections.abc import Iterator

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.conftest import start_components
from gateway.tests.faults.http_peers import RESPONSE_BYTES_MAX
from gateway.tests.faults.town import Town
from gateway.tests.served import Served, serve_gateway

__all__ = ["start_components"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that takes only small answers."""
    folder = tmp_path_factory.mktemp("gateway")
    environ = {
        "ACP_LIMITS_MAX_RESPONSE_BYTES": str(RESPONSE_BYTES_MAX),
        "ACP_LEASES_PROBE_INTERVAL_MS": "600000",  # what revives a lease is the test's to say
        "ACP_GOVERNANCE_ENABLED": "false",  # each fault is to be seen as often as it is asked for
        "ACP_GRACE_PIN_GRACE_MS": "200",
        "ACP_GRACE_ATTACH_GRACE_MS": "200",
    }
    one = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ=environ)
    yield one
    assert one.stop() == 0
    assert "Traceback" not in one.log()


@pytest.fixture(scope="module")
def client(gateway: Served) -> Iterator[Client]:
    with Client(gateway.url) as one:
        yield one


@pytest.fixture
def town() -> Iterator[Town]:
    with Town() as one:
        yield one
