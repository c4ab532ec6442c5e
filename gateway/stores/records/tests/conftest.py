"""One child for the tests of a module that only need a store behind TCP."""

from collections.abc import Iterator

import pytest

from gateway.stores.records.store import RecordStore, connect
from gateway.stores.records.tests.childhood import Child


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with Child(tmp_path_factory.mktemp("child")) as running:
        yield running


@pytest.fixture
def store(child: Child) -> Iterator[RecordStore]:
    connected = connect(child.endpoint)
    yield connected
    connected.close()
