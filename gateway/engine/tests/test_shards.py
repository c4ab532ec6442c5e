"""The shards are projections: written row by row, they equal what the whole state says."""

import pytest

from gateway.engine import shards
from gateway.engine.shards import Shard
from gateway.engine.states import SessionState
from gateway.engine.tests import troubles
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, FOUR_CALLS, gave_text, troupe, workflow_of


def projected(play: Play) -> dict[tuple[Shard, str], bytes]:
    """Rows as they are written event by event."""
    rows: dict[tuple[Shard, str], bytes] = {}

    def write(before: SessionState | None, after: SessionState) -> None:
        rows.update({(row.shard, row.key): row.data for row in shards.changed(before, after)})

    play.on_event = lambda before, event, after: write(before, after)
    play.open()
    play.run()
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_rows_written_along_the_way_are_those_of_the_state_at_the_end(seed: int) -> None:
    """Also what came after the end: feedback and late answers moved the version of the list."""
    play = troubles.random_play(seed)
    rows = projected(play)
    troubles.judge(play)
    whole = {(row.shard, row.key): row.data for row in shards.changed(None, play.state)}
    assert rows == whole


def test_rows_hold_no_payload() -> None:
    secret = gave_text(b'"4711-secret"')
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe(read=secret)))
    assert all(b"4711-secret" not in data for data in projected(play).values())
    assert b"4711-secret" in b"".join(bytes(c.output) for c in play.state.calls.values())


def test_a_row_is_written_again_only_when_it_changed() -> None:
    written: list[Shard] = []
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe()))

    def count(before: SessionState, event: object, after: SessionState) -> None:
        written.extend(row.shard for row in shards.changed(before, after))

    play.on_event = count
    play.open().run()
    assert written.count(Shard.EXECUTION) == 4, "one per settled call"
    assert written.count(Shard.FEEDBACK) == 0
