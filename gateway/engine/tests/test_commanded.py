"""The hash of all commands: any other command is another hash, and old sessions keep theirs."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine import commanded, replay
from gateway.engine.commands import Advance, Call, Command, End, Record, Send, StartTimer
from gateway.engine.events import BEHAVIOUR, Opened, Timer
from gateway.engine.tests.write_histories import many_loops

NOW, BEFORE = (
    Opened(at_ms=1, session_id="s", lineage_id="l", behaviour=behaviour)
    for behaviour in (BEHAVIOUR, commanded.SINCE_BEHAVIOUR - 1)
)
NAMES = st.text(max_size=40)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Advance),
    st.builds(Call, NAMES),
    st.builds(Send, NAMES, st.integers(1, 9)),
    st.builds(StartTimer, st.sampled_from(Timer), st.integers(0, 2**40), NAMES),
)
Turns = list[list[Command]]
TURNS: st.SearchStrategy[Turns] = st.lists(st.lists(COMMANDS, max_size=3), max_size=60)


def kept(turns: Turns, opened: Opened = NOW) -> bytes:
    """What is kept after all these turns; of each turn, no more than a block."""
    before = b""
    for commands in turns:
        before = commanded.after(before, commands, opened=opened)
        assert len(before) <= commanded.BLOCK_BYTES
    return before


def digest(turns: Turns, opened: Opened = NOW) -> str:
    return commanded.digest(kept(turns, opened), opened=opened)


@given(TURNS, TURNS)
def test_other_commands_are_another_digest(one: Turns, two: Turns) -> None:
    told = [[turn for turn in turns if turn] for turns in (one, two)]
    for opened in (NOW, BEFORE):
        assert (digest(one, opened) == digest(two, opened)) is (told[0] == told[1])


@given(st.integers(1, 120), st.data())
def test_one_command_among_many_is_missed(count: int, data: st.DataObject) -> None:
    """Whether it stands in the block that is kept, or in one that was hashed long ago."""
    turns: Turns = [[Call(f"{number:032}")] for number in range(count)]
    missing = data.draw(st.integers(0, count - 1))
    assert digest(turns) != digest([*turns[:missing], *turns[missing + 1 :]])


def test_a_session_opened_before_keeps_the_digest_that_it_was_given_then() -> None:
    turns: Turns = [[Advance()], [Call("c")], [], [Send("c", 1)], [Record(), End()]]
    assert digest(turns, BEFORE) == "c5678c1dcb427331dfc70e8de2442679"
    assert digest(turns) == "3e8987d15be7d052202052f0b01a42fb", (
        "a block's form and size are kept for ever"
    )


def test_the_history_of_many_loops_crosses_blocks() -> None:
    play = many_loops()
    _, played = replay.play(play.journal, play.workflow)
    told = b"".join(msgspec.json.encode(one.commands) for one in played)
    assert len(told) > 2 * commanded.BLOCK_BYTES
    assert play.state.opened.behaviour >= commanded.SINCE_BEHAVIOUR
