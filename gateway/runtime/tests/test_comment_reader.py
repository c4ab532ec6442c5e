"""A reflector that reads comments: its answer is journaled, and whatever goes wrong is no grade."""

import asyncio
import json

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import FeedbackKind, StepRole
from acp_spec.model.errors import Reason
from acp_spec.model.reward_vector import CommentReading, Validity
from acp_spec.model.session import Feedback
from gateway.engine.events import FeedbackGiven
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ONE_ACTION
from gateway.engine.trajectories import trajectory
from gateway.rewards.readings import readings
from gateway.runtime.comment_reader import AT_ONCE, STEP, WAITING_MAX, CommentReader
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import Line
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

WORDS = "the fee is wrong"


def _output(text: str) -> Said:
    return Said(response=b'{"verdict":"ACCEPT","output":%s}' % text.encode())


def _read(line: Line, *, pin: str = "reflector@1.0.0") -> tuple[CommentReading, House]:
    """What stands of a comment once the reflector has said this line."""

    async def story() -> tuple[CommentReading, House]:
        house = House()
        house.targets.connection.lines[STEP] = line
        reader = CommentReader(pin, timeout_ms=1_000)
        reader.connect(house.targets, house.contexts, tell=house.driver.tell)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        await comment(house, reader, session=session)
        await asyncio.sleep(2)
        live = house.driver.find(session)
        assert live is not None
        (found,) = readings(trajectory(live.state).feedback)
        return found, house

    return run(story())


async def comment(house: House, reader: CommentReader, *, session: str, author: str = "a") -> None:
    given = Feedback(kind=FeedbackKind.COMMENT, comment=WORDS, author=author)
    await house.service.feedback(session, given, principal=LOCAL)
    live = house.driver.find(session)
    assert live is not None
    event = house.journal(session)[-1]
    assert isinstance(event, FeedbackGiven)
    reader.seen(live.state, event)


def test_its_tags_and_corrections_come_back_as_feedback_of_the_gateways_own() -> None:
    text = '{"tags":["WRONG_AMOUNT"],"corrections":[{"wrong":"5","right":"3"}]}'
    found, house = _read(_output(text))
    assert (found.tags, found.by, found.validity.value) == (
        ("WRONG_AMOUNT",),
        "reflector@1.0.0",
        "VALID",
    )
    assert [(one.wrong, one.right) for one in found.corrections] == [("5", "3")]
    sent = house.targets.connection.sent[-1]
    assert (sent.role, sent.context.timeout_ms, sent.context.attempt) == (
        StepRole.REFLECT,
        1_000,
        1,
    )
    assert json.loads(bytes(sent.body))["draft"] == {
        "comment": WORDS,
        "kind": "COMMENT",
        "target": {},
    }
    given = [e for e in house.journal(house.recorded[0][0]) if isinstance(e, FeedbackGiven)]
    authors = [event.feedback.author for event in given]
    assert authors == ["a", "gateway/comment-reader/a"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (None, "TIMEOUT: no answer came in time"),
        (Said(error=error(Reason.OVERLOADED, "busy")), "OVERLOADED: busy"),
        (_output('{"tags":["not a tag"]}'), "its output is not {tags, corrections}"),
        (_output('"sounds bad"'), "its output is not {tags, corrections}"),
        (_output(json.dumps({"tags": ["A"] * 11})), "its output is not {tags, corrections}"),
        (Said(response=b'{"verdict":"ACCEPT"}'), "its output is not {tags, corrections}"),
        (Said(response=b"{"), "CONTRACT_VIOLATION"),
    ],
)
def test_whatever_goes_wrong_is_not_judged_and_says_why(line: Line, reason: str) -> None:
    found, _ = _read(line)
    assert (found.validity, found.tags, found.corrections) == (Validity.NOT_JUDGED, (), ())
    assert found.reason.startswith(reason), found.reason


def test_a_reflector_that_is_not_there_is_not_judged() -> None:
    found, _ = _read(None, pin="nobody@1.0.0")
    assert found.reason.startswith("NO_COMPONENT: no instance of nobody@1.0.0")


def test_a_crowd_of_comments_goes_a_few_at_a_time_and_the_rest_is_read_by_rules() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines[STEP] = None
        reader = CommentReader("reflector@1.0.0", timeout_ms=1_000)
        reader.connect(house.targets, house.contexts, tell=house.driver.tell)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        await comment(house, reader, session=session)
        live = house.driver.find(session)
        assert live is not None
        event = house.journal(session)[-1]
        before = len(house.targets.connection.sent) - 1
        for number in range(1, WAITING_MAX + 2 * AT_ONCE):
            assert isinstance(event, FeedbackGiven)
            one = Feedback(kind=FeedbackKind.COMMENT, comment=WORDS, feedback_id=f"f{number}")
            reader.seen(live.state, FeedbackGiven(at_ms=1, feedback=one, feedback_id=f"f{number}"))
        assert len(house.targets.connection.sent) - before == AT_ONCE
        reader.close()
        await asyncio.sleep(2)
        assert len(house.targets.connection.sent) - before == AT_ONCE
        assert [row.by for row in readings(trajectory(live.state).feedback)] == ["rules"]

    run(story())


def test_what_the_gateway_says_itself_is_not_sent_to_be_read() -> None:
    async def story() -> None:
        house = House()
        reader = CommentReader("reflector@1.0.0", timeout_ms=1_000)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        live = house.driver.find(session)
        assert live is not None
        own = Feedback(kind=FeedbackKind.COMMENT, comment="slow", author="gateway/sla")
        reader.seen(live.state, FeedbackGiven(at_ms=1, feedback=own, feedback_id="f"))

    run(story())
