"""Whose answers state another version than was called is in doubt; nobody else is."""

import msgspec

from gateway.engine.events import AttemptEnded
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, ONE_ACTION, troupe, workflow_of
from gateway.runtime.replaced import Replaced


def doubted(stated: str) -> list[str]:
    """The instances in doubt after one call whose answer states this version."""
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, Cast(component=troupe())).open().run()
    found: list[str] = []
    observer = Replaced()
    observer.doubt = found.append
    for event in play.journal:
        is_end = isinstance(event, AttemptEnded)
        told = msgspec.structs.replace(event, served_version=stated) if is_end else event
        observer.seen(play.state, told)
    (call,) = play.state.calls.values()
    started = call.started(1)
    assert started is not None
    assert started.version
    assert found in ([], [started.instance])
    return found


def test_an_answer_of_another_version_casts_doubt() -> None:
    assert doubted("9.9.9")


def test_the_version_that_was_called_and_one_that_is_not_stated_cast_none() -> None:
    assert not doubted("")
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, Cast(component=troupe())).open().run()
    (call,) = play.state.calls.values()
    started = call.started(1)
    assert started is not None
    assert not doubted(started.version)
