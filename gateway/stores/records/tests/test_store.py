"""The store's tables: brought forward in numbered steps, each once, also after a crash."""

import pytest

from gateway.stores.records.endpoint import endpoint_of
from gateway.stores.records.store import TABLES, RecordStore, migrations


def test_a_store_that_is_up_to_date_is_left_alone(store: RecordStore) -> None:
    assert store.migrate() == 0
    assert store.count("migrations") == len(migrations())


def test_a_step_that_a_crash_interrupted_is_finished_by_the_next_start(store: RecordStore) -> None:
    store._mutate("ALTER TABLE migrations DELETE WHERE number = 2")
    store._client.command("DROP VIEW v_gaps")
    assert store.migrate() == 1
    assert store.count("v_gaps") == store.count("gaps")
    assert store.migrate() == 0


def test_the_embedded_engine_merges_many_small_parts_at_once(store: RecordStore) -> None:
    for table in TABLES:
        ((form,),) = store._rows(f"SHOW CREATE TABLE {table}")
        assert "merge_selector_base = 20" in str(form)


def test_steps_are_numbered_without_holes_in_the_order_of_their_files() -> None:
    found = migrations()
    assert [step.number for step in found] == list(range(1, len(found) + 1))
    assert all(step.statements for step in found)


def test_a_url_names_host_port_and_user_and_the_password_may_stand_elsewhere() -> None:
    found = endpoint_of("https://ann@db.example:9440", "secret")
    assert (found.host, found.port, found.user, found.password) == (
        "db.example",
        9440,
        "ann",
        "secret",
    )
    assert found.is_remote
    assert endpoint_of("http://127.0.0.1").port == 8123
    with pytest.raises(ValueError, match=r"http\(s\)://user@host:port"):
        endpoint_of("clickhouse://x")
