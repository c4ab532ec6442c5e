"""Every kept history replays the same, for ever; and the file itself is whole."""

import msgspec
import pytest

from gateway.engine import replay
from gateway.engine.tests import histories, write_histories
from gateway.engine.trajectories import trajectory

NAMES = sorted(histories.kept())


def test_no_story_lacks_its_history() -> None:
    assert set(write_histories.STORIES) <= set(NAMES)
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_history_commands_what_it_did(name: str) -> None:
    history = histories.read(name)
    events = [entry.event for entry in history.entries]
    state, played = replay.play(events, history.parsed())
    for one, entry in zip(played, history.entries, strict=True):
        assert msgspec.json.encode(one.commands) == msgspec.json.encode(entry.commands), (
            f"{name}: event {one.number} commands something else than when it was kept"
        )
    assert (state.status.value, state.version_text) == (history.status, history.version)
    found = replay.check(events, history.parsed())
    assert found.same, found.difference
    assert trajectory(state).session_id == state.session_id


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_history_is_read_back_as_it_was_written(name: str) -> None:
    history = histories.read(name)
    whole = msgspec.json.decode(histories.kept()[name].read_bytes())
    again = msgspec.json.decode(msgspec.json.encode(history))
    assert again == whole
