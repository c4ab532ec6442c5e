"""A store that an older version left: its tables are brought forward, and its rows filled."""

from pathlib import Path

import msgspec

from gateway.stores.records.feed_status import Outcome
from gateway.stores.records.reach import Limits, Reader
from gateway.stores.records.store import client_of
from gateway.stores.records.tests.childhood import Child
from gateway.stores.records.tests.sessions import new_log, put, whole

LATER = ("call_roles", "call_waits_ms", "call_reused", "took_part", "blamed")


def _made_old(child: Child) -> None:
    """As the version before the dashboard's columns had it, with hashes of what rows said then."""
    client = client_of(child.endpoint)
    synced = {"mutations_sync": "1"}
    for statement in (
        *(f"ALTER TABLE sessions DROP COLUMN {name}" for name in LATER),
        "ALTER TABLE sessions UPDATE row_hash = row_hash + 1 WHERE 1",
        "ALTER TABLE migrations DELETE WHERE number = 3",
    ):
        client.command(statement, settings=synced)
    client.close()


def test_rows_of_before_get_their_new_columns_from_the_log_without_being_asked(
    tmp_path: Path,
) -> None:
    put(new_log(tmp_path / "trajectories"), *(whole(number) for number in range(3)))
    with Child(tmp_path) as child:
        child.fed()
        _made_old(child)
        assert child.stop() == 0
    with Child(tmp_path) as child:
        status = child.once(lambda one: one.comparison.outcome is Outcome.HEALED)
        assert status.comparison.differing == 3
        reader = Reader(child.endpoint, timeout_ms_max=10_000)
        answer = reader.query(
            "SELECT count(), groupUniqArray(took_part), groupUniqArray(call_roles) FROM v_sessions",
            Limits(),
        )
        assert msgspec.json.decode(answer.data) == [[3, [["cards"]], [["tool", "tool"]]]]
    with Child(tmp_path) as child:
        assert child.fed().comparison.outcome is Outcome.NONE, "nothing to bring forward now"
