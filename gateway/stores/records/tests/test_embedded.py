"""Connections of the embedded engine are used again, and nobody finds there what another left."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gateway.stores.records.store import client_of
from gateway.stores.records.tests.childhood import Child

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


@pytest.fixture
def client(child: Child) -> "Iterator[Client]":
    connected = client_of(child.endpoint)
    yield connected
    connected.close()


def asked(client: "Client", sql: str) -> str:
    return client.raw_query(sql, fmt="TabSeparated").decode().strip()


def test_a_setting_made_by_one_statement_does_not_hold_for_the_next(client: "Client") -> None:
    before = asked(client, "SELECT getSetting('max_threads')")
    client.command("SET max_threads = 77")
    assert asked(client, "SELECT getSetting('max_threads')") == before != "77"


def test_a_setting_within_a_statement_ends_with_it(client: "Client") -> None:
    client.command("CREATE TABLE held (n UInt8) ENGINE = MergeTree ORDER BY n")
    for number in (1, 2):
        said = "insert_deduplication_token = 'told'"
        row = b'{"n": %d}' % number
        client.raw_insert(f"held SETTINGS {said}", insert_block=row, fmt="JSONEachRow")
        assert asked(client, "SELECT getSetting('insert_deduplication_token')") == ""
    client.command("DROP TABLE held")


def test_each_database_has_its_own_connections(client: "Client", child: Child) -> None:
    other = client_of(child.endpoint, database="system")
    for _ in range(3):
        assert asked(client, "SELECT currentDatabase()") == "acp"
        assert asked(other, "SELECT currentDatabase()") == "system"
        other.command("USE acp")
    other.close()
