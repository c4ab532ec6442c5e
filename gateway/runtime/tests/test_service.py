"""Sessions as clients use them: who may see what, keys, manual steps, feedback."""

import asyncio
from collections.abc import Coroutine

import msgspec
import pytest

from acp_spec.model.enums import FeedbackKind, Mode, SessionStatus, StepType
from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    Feedback,
    FeedbackTarget,
    FinishRequest,
    ManualStep,
    Opened,
    OpenSession,
    SessionView,
)
from acp_spec.model.times import parse_rfc3339
from gateway.engine.events import FeedbackGiven
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import LIMITS, House, told
from gateway.runtime.tests.virtual_time import run

STRANGER = Principal(tenant="stranger", scopes=frozenset(("admin",)), subject="s")
NOBODY = "01HF7YAT00000G00000000000Z"


def step(text: bytes = b'{"action":"read"}', key: str = "k") -> ManualStep:
    return ManualStep(step_type=StepType.TOOL, payload=payload(text), step_key=key)


def rating(score: float | None = 0.5, **fields: object) -> Feedback:
    return Feedback(kind=FeedbackKind.RATING, score=score, **fields)  # type: ignore[arg-type]


# ---- tenants ---------------------------------------------------------------------------


def test_a_foreign_tenants_session_is_not_found_whatever_is_asked() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        manual = await house.open("")
        lineage = (await house.ended(session)).lineage_id
        service = house.service
        asked: list[Coroutine[object, object, object]] = [
            service.view(session, STRANGER),
            service.cancel(session, STRANGER),
            service.feedback(session, rating(), principal=STRANGER),
            service.erase(session, STRANGER),
            service.trajectory(session, STRANGER),
            service.lineage(lineage, STRANGER),
            service.manual_step(manual, step(), principal=STRANGER, wait_s=0),
            service.step_result(manual, "k", principal=STRANGER),
            service.finish(manual, FinishRequest(), principal=STRANGER),
        ]
        assert {await told(question) for question in asked} == {"NOT_FOUND"}
        with pytest.raises(AcpFailure):
            service.events(session, STRANGER, after=0)
        assert (await service.page(STRANGER)).sessions == ()

    run(story())


@pytest.mark.parametrize("name", ["", "x", NOBODY, "../../etc", "é" * 26, NOBODY.lower()])
def test_what_is_no_session_is_not_found(name: str) -> None:
    async def story() -> None:
        house = House()
        assert await told(house.service.view(name, LOCAL)) == "NOT_FOUND"
        assert await told(house.service.lineage(name, LOCAL)) == "NOT_FOUND"

    run(story())


# ---- open ------------------------------------------------------------------------------


def test_opening_with_wait_gives_the_view_once_it_ended_else_the_opening() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=3_000)
        quick, created = await house.service.open(
            await house.request(ONE_ACTION % "read"), LOCAL, wait_s=1
        )
        assert isinstance(quick, SessionView)
        assert created
        slow, _ = await house.service.open(await house.request(ONE_ACTION % "put"), LOCAL, wait_s=1)
        assert isinstance(slow, Opened)

    run(story())


def test_a_session_key_with_the_same_body_is_the_same_session_and_another_a_conflict() -> None:
    async def story() -> None:
        house = House()
        request = await house.request(ONE_ACTION % "read", session_key="k")
        one, new = await house.service.open(request, LOCAL)
        same, again = await house.service.open(request, LOCAL)
        assert (one.session_id, new, again) == (same.session_id, True, False)
        other = msgspec.structs.replace(request, priority=1)
        assert await told(house.service.open(other, LOCAL)) == "ALREADY_EXISTS"
        foreign, new = await house.service.open(other, STRANGER)
        assert new
        assert foreign.session_id != one.session_id
        await house.ended(one.session_id)
        late, again = await house.service.open(request, LOCAL, wait_s=1)
        assert (late.session_id, again) == (one.session_id, False)
        assert isinstance(late, SessionView), "it has ended: the answer is its end"

    run(story())


def test_two_openings_with_one_key_in_the_same_moment_are_one_session() -> None:
    async def story() -> None:
        house = House()
        request = await house.request(ONE_ACTION % "read", session_key="k")
        opened = await asyncio.gather(*(house.service.open(request, LOCAL) for _ in range(5)))
        assert len({found.session_id for found, _ in opened}) == 1
        assert [created for _, created in opened].count(True) == 1

    run(story())


def test_white_space_between_tokens_makes_no_other_request_and_a_token_does() -> None:
    async def story() -> None:
        house = House()
        await house.ended(await house.open(ONE_ACTION % "read"))
        workflow = (await house.service.page(LOCAL)).sessions[0].workflow

        def asked(text: bytes) -> OpenSession:
            return OpenSession(workflow=workflow, input=payload(text), session_key="k")

        first, _ = await house.service.open(asked(b'{"v": 1.0, "t": "a b"}'), LOCAL)
        for same in (b'{"v":1.0,"t":"a b"}', b' {\n"v" : 1.0 ,"t":"a b" } '):
            again, created = await house.service.open(asked(same), LOCAL)
            assert (again.session_id, created) == (first.session_id, False)
        for other in (b'{"v":1,"t":"a b"}', b'{"v":1.0,"t":"ab"}', b'{"v":1.00,"t":"a b"}'):
            refused = await told(house.service.open(asked(other), LOCAL))
            assert refused == "ALREADY_EXISTS"

    run(story())


def test_a_session_key_has_at_most_256_characters() -> None:
    async def story() -> None:
        house = House()
        long = OpenSession(workflow="w", session_key="k" * 257)
        assert await told(house.service.open(long, LOCAL)) == "INVALID_REQUEST"

    run(story())


def test_a_session_key_survives_a_restart() -> None:
    async def story() -> None:
        house = House()
        request = await house.request(ONE_ACTION % "read", session_key="k")
        one, _ = await house.service.open(request, LOCAL)
        again = House(store=house.store, seed=8)
        same, created = await again.service.open(request, LOCAL)
        assert (same.session_id, created) == (one.session_id, False)

    run(story())


@pytest.mark.parametrize(
    ("workflow", "key", "reason"),
    [
        ("nothing@1.0.0", "", "NOT_FOUND"),
        ("", "", "INVALID_REQUEST"),
        ("nothing", "a\0b", "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_opened_says_why(workflow: str, key: str, reason: str) -> None:
    async def story() -> None:
        house = House()
        request = await house.request(ONE_ACTION % "read")
        wrong = msgspec.structs.replace(request, workflow=workflow, session_key=key)
        assert await told(house.service.open(wrong, LOCAL)) == reason
        assert house.driver.open_sessions == 0

    run(story())


def test_too_many_open_sessions_are_refused_until_one_ends() -> None:
    async def story() -> None:
        house = House(limits=msgspec.structs.replace(LIMITS, max_open_sessions=1))
        first = await house.open(ONE_ACTION % "read")
        request = await house.request(ONE_ACTION % "put")
        assert await told(house.service.open(request, LOCAL)) == "OVERLOADED"
        await house.ended(first)
        await house.service.open(request, LOCAL)

    run(story())


def test_the_deadline_is_the_callers_else_the_workflows_else_the_default_within_bounds() -> None:
    async def story() -> None:
        house = House()
        own = ONE_ACTION % "read" + "limits: {deadline_ms: 700}\n"
        for text, asked, expected in (
            (own, 0, 700),
            (own, 900, 900),
            (ONE_ACTION % "read", 0, 30_000),
            (ONE_ACTION % "read", 10**12, 600_000),
            ("", 0, 600_000),
        ):
            session = await house.open(text, deadline_ms=asked)
            assert house.state(session).opened.deadline_ms == expected

    run(story())


# ---- view ------------------------------------------------------------------------------


def test_a_view_older_than_asked_is_stale() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        version = (await house.ended(session)).state_version
        assert (await house.service.view(session, LOCAL, min_version=version)).state_version
        for wanted, reason in (("3.3.1", "STALE_STATE"), ("9.0.0", "STALE_STATE"), ("x", None)):
            found = await told(house.service.view(session, LOCAL, min_version=wanted))
            assert found == (reason or "INVALID_REQUEST")

    run(story())


def test_the_lineage_page_is_found_by_its_whole_id_only() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        lineage = (await house.ended(session)).lineage_id
        assert b'"served"' in await house.service.lineage(lineage, LOCAL)
        for wrong in (session, f"{session}.", f"{session}.000000000000"):
            assert await told(house.service.lineage(wrong, LOCAL)) == "NOT_FOUND"

    run(story())


# ---- manual steps ----------------------------------------------------------------------


def test_a_manual_step_runs_once_per_key_and_its_result_can_be_asked_again() -> None:
    async def story() -> None:
        house = House()
        session = await house.open("")
        first = await house.service.manual_step(session, step(), principal=LOCAL, wait_s=1)
        again = await house.service.manual_step(session, step(), principal=LOCAL, wait_s=1)
        asked = await house.service.step_result(session, "k", principal=LOCAL)
        assert first.status.value == "SUCCEEDED"
        assert first == again == asked
        assert len(house.targets.connection.sent) == 1
        other = step(b'{"action":"put"}')
        refused = house.service.manual_step(session, other, principal=LOCAL, wait_s=1)
        assert await told(refused) == "ALREADY_EXISTS"
        unknown = house.service.step_result(session, "other", principal=LOCAL)
        assert await told(unknown) == "NOT_FOUND"

    run(story())


def test_a_step_without_a_key_gets_one_of_its_own() -> None:
    async def story() -> None:
        house = House()
        session = await house.open("")
        keys = [
            (
                await house.service.manual_step(session, step(key=""), principal=LOCAL, wait_s=1)
            ).step_key
            for _ in range(2)
        ]
        assert len(set(keys)) == 2
        assert len(house.targets.connection.sent) == 2

    run(story())


def test_a_key_chosen_for_the_gateways_own_numbering_does_not_swallow_a_step() -> None:
    """A client took `step-2` for its first step; its second one, without a key, was refused."""

    async def story() -> None:
        house = House()
        session = await house.open("")
        await house.service.manual_step(session, step(key="step-2"), principal=LOCAL, wait_s=1)
        second = step(b'{"action":"put"}', key="")
        found = await house.service.manual_step(session, second, principal=LOCAL, wait_s=1)
        assert found.step_key != "step-2"
        assert len(house.targets.connection.sent) == 2

    run(story())


def test_a_slow_step_is_running_until_it_is_done() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=2_000)
        session = await house.open("")
        begun = await house.service.manual_step(session, step(), principal=LOCAL, wait_s=0.5)
        assert begun.status.value == "RUNNING"
        early = house.service.finish(session, FinishRequest(), principal=LOCAL)
        assert await told(early) == "CALL_IN_PROGRESS"
        await asyncio.sleep(2)
        done = await house.service.step_result(session, "k", principal=LOCAL)
        assert done.status.value == "SUCCEEDED"

    run(story())


def test_a_finished_session_takes_no_steps_and_can_be_finished_again_the_same_way() -> None:
    async def story() -> None:
        house = House()
        session = await house.open("")
        wanted = FinishRequest(output=payload(b"0.10"))
        view = await house.service.finish(session, wanted, principal=LOCAL)
        assert (view.status.value, bytes(view.output)) == ("SUCCEEDED", b"0.10")
        again = await house.service.finish(session, wanted, principal=LOCAL)
        assert again == view
        other = FinishRequest(output=payload(b"1"))
        refused = house.service.finish(session, other, principal=LOCAL)
        assert await told(refused) == "SESSION_ENDED"
        late = house.service.manual_step(session, step(), principal=LOCAL, wait_s=0)
        assert await told(late) == "SESSION_ENDED"

    run(story())


def test_automatic_sessions_are_neither_stepped_nor_finished() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        stepped = house.service.manual_step(session, step(), principal=LOCAL, wait_s=0)
        assert await told(stepped) == "NOT_MANUAL"
        finished = house.service.finish(session, FinishRequest(), principal=LOCAL)
        assert await told(finished) == "NOT_MANUAL"

    run(story())


# ---- feedback and cancel ---------------------------------------------------------------


def test_feedback_is_taken_once_per_id_and_moves_only_its_own_counter() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        before = await house.ended(session)
        given = rating(feedback_id="f")
        one = await house.service.feedback(session, given, principal=LOCAL)
        two = await house.service.feedback(session, given, principal=LOCAL)
        assert one == two
        after = await house.service.view(session, LOCAL)
        assert after.status is before.status
        assert after.state_version == before.state_version[:-1] + "1"
        assert [type(e) for e in house.journal(session)].count(FeedbackGiven) == 1
        assert len(house.recorded) == 2

    run(story())


def test_feedback_without_an_id_is_the_same_if_author_time_and_words_are() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        timed = rating(time="2026-01-01T00:00:00Z", author="a")
        one = await house.service.feedback(session, timed, principal=LOCAL)
        two = await house.service.feedback(session, timed, principal=LOCAL)
        assert one.feedback_id == two.feedback_id
        untimed = rating(author="a")
        three = await house.service.feedback(session, untimed, principal=LOCAL)
        assert three.feedback_id != one.feedback_id

    run(story())


def test_feedback_from_the_far_future_does_not_win_for_ever() -> None:
    """An author whose clock was wrong, or who meant it, was the last writer until the year 9999."""

    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        for score, time in ((0.1, "9999-12-31T23:59:59Z"), (0.9, "")):
            given = rating(score, author="a", time=time)
            one = await house.service.feedback(session, given, principal=LOCAL)
            if time:
                two = await house.service.feedback(session, given, principal=LOCAL)
                assert one.feedback_id == two.feedback_id
                await asyncio.sleep(6 * 60)
        kept = [e.feedback for e in house.journal(session) if isinstance(e, FeedbackGiven)]
        first_ms, second_ms = (parse_rfc3339(feedback.time) for feedback in kept)
        assert first_ms is not None
        assert second_ms is not None
        assert first_ms < second_ms

    run(story())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (rating(target=FeedbackTarget(step="act", loop=1)), "NOT_FOUND"),
        (rating(target=FeedbackTarget(loop=1)), "NOT_FOUND"),
        (rating(target=FeedbackTarget(call_id="nobody")), "NOT_FOUND"),
        (rating(target=FeedbackTarget(step="nobody")), "NOT_FOUND"),
        (rating(score=None), "INVALID_REQUEST"),
        (rating(time="yesterday"), "INVALID_REQUEST"),
    ],
)
def test_feedback_that_means_nothing_is_refused(given: Feedback, reason: str) -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        found = await told(house.service.feedback(session, given, principal=LOCAL))
        assert found == reason

    run(story())


def test_cancelling_twice_and_after_the_end_is_fine() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = None
        session = await house.open(ONE_ACTION % "read")
        for _ in range(2):
            await house.service.cancel(session, LOCAL)
        view = await house.ended(session)
        assert view.status.value == "CANCELLED"
        assert (await house.service.cancel(session, LOCAL)).status.value == "CANCELLED"

    run(story())


def test_a_client_cannot_finish_with_an_output_that_breaks_the_contract() -> None:
    async def story() -> None:
        house = House()
        text = ONE_ACTION % "read" + "contract: {output_schema: {required: [fee]}}\n"
        session = await house.open(text, mode=Mode.MANUAL)

        async def finish(output: bytes) -> str:
            wanted = FinishRequest(output=payload(output))
            return await told(house.service.finish(session, wanted, principal=LOCAL))

        assert await finish(b"{}") == "CONTRACT_VIOLATION"
        view = await house.service.view(session, LOCAL)
        assert view.status is SessionStatus.RUNNING
        wanted = FinishRequest(output=payload(b'{"fee":1}'))
        finished = await house.service.finish(session, wanted, principal=LOCAL)
        assert finished.status is SessionStatus.SUCCEEDED

    run(story())


def test_nobody_signs_feedback_with_a_name_of_the_gateways_own_checks() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        given = rating(author="gateway/plan-guard")
        refused = house.service.feedback(session, given, principal=LOCAL)
        assert await told(refused) == "INVALID_REQUEST"

    run(story())
