"""Keeping the records' process running: started once, again when it ends, never in the way."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Coroutine

import pytest

from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime import records as records_module
from gateway.runtime.records import (
    EXIT_NO_EXTRA,
    RETRY_AFTER_MS,
    Records,
    RecordsState,
    refused_question,
)
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.questions.question import Question
from gateway.stores.records.questions.series import SeriesPoint, series
from gateway.stores.records.questions.span import Span
from gateway.stores.records.reach import Limits, QueryFailed

NOBODY = Endpoint(host="127.0.0.1", port=9)


class FakeChild:
    """A process that is ready at once and ends when it is told to."""

    pid = 1

    def __init__(self, *, is_slow: bool = False) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.was_stopped = False
        self.is_slow = is_slow

    async def ready(self) -> Endpoint:
        if self.is_slow:
            await self.wait()
            raise EOFError
        return NOBODY

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)

    def end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)

    def stop(self) -> None:
        self.was_stopped = True
        self.end(0)

    def kill(self) -> None:
        self.end(-9)


class Nursery:
    """Starts fake processes, and remembers them."""

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.prompted = 0
        self.is_slow = False
        self.records = Records(
            self.launch, cluster=lambda: None, most=Limits, on_start=self._prompt
        )

    async def launch(self) -> FakeChild:
        self.children.append(FakeChild(is_slow=self.is_slow))
        return self.children[-1]

    def _prompt(self) -> None:
        self.prompted += 1

    async def until(self, state: RecordsState, starts: int) -> None:
        await until(lambda: (self.records.state, self.records.starts) == (state, starts))


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_000_000):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


def _run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(story)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "BACKOFF_FIRST_S", 0.0)
    monkeypatch.setattr(records_module, "PING_EVERY_S", 1_000.0)


def test_a_process_that_ends_is_started_again_and_the_last_one_is_stopped() -> None:
    async def story() -> None:
        nursery = Nursery()
        assert nursery.records.state is RecordsState.STOPPED
        nursery.records.start()
        nursery.records.start()
        await nursery.until(RecordsState.UP, 1)
        nursery.children[0].end(-9)
        await nursery.until(RecordsState.UP, 2)
        await nursery.records.close()
        assert nursery.children[1].was_stopped
        assert nursery.prompted == 1
        assert nursery.records.state is RecordsState.STOPPED

    _run(story())


def test_a_process_that_hangs_is_killed_and_another_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records_module, "PING_EVERY_S", 0.001)

    async def story() -> None:
        nursery = Nursery()
        nursery.records.start()
        await nursery.until(RecordsState.UP, 2)  # nobody answers at its port
        assert nursery.children[0].ended.result() == -9
        await nursery.records.close()

    _run(story())


def test_without_the_extra_nothing_is_started_and_the_answer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    async def story() -> None:
        nursery = Nursery()
        with pytest.raises(AcpFailure, match=r"pip install 'acp-decision-gateway\[records\]'"):
            await nursery.records.query("SELECT 1")
        assert nursery.children == []

    _run(story())


def test_what_a_wrong_setting_raises_is_told_and_the_start_tried_again() -> None:
    """It ended the keeper without a word: the records were starting for ever."""

    async def story() -> None:
        nursery = Nursery()
        wrong = [ValueError("no address"), OSError("records.password: env:NOPE is missing")]

        async def launch() -> FakeChild:
            if wrong:
                raise wrong.pop()
            return await nursery.launch()

        records = Records(launch, cluster=lambda: None, most=Limits, on_start=nursery._prompt)
        records.start()
        told = set[str]()

        def is_up() -> bool:
            told.add(records.problem)
            return records.state is RecordsState.UP

        await until(is_up)
        assert any("env:NOPE is missing" in one for one in told)
        await records.close()

    _run(story())


def test_a_process_that_finds_no_extra_is_not_started_again() -> None:
    async def story() -> None:
        nursery = Nursery()
        nursery.records.start()
        await nursery.until(RecordsState.UP, 1)
        nursery.children[0].end(EXIT_NO_EXTRA)
        await nursery.until(RecordsState.STARTING, 1)
        await until(lambda: bool(nursery.records.problem))
        assert "pip install" in nursery.records.problem
        await nursery.records.close()
        assert len(nursery.children) == 1

    _run(story())


def test_a_question_to_a_process_that_is_gone_is_told_that_nobody_is_there() -> None:
    async def story() -> None:
        nursery = Nursery()
        nursery.records.start()
        await nursery.until(RecordsState.UP, 1)
        with pytest.raises(AcpFailure, match="UNAVAILABLE"):
            await nursery.records.query("SELECT 1")
        nursery.children[0].end(-9)
        with pytest.raises(AcpFailure, match="UNAVAILABLE"):
            await nursery.records.told("status")
        await nursery.records.close()

    _run(story())


def test_sql_that_may_not_run_starts_nothing() -> None:
    async def story() -> None:
        nursery = Nursery()
        with pytest.raises(AcpFailure, match="only read"):
            await nursery.records.query("DROP TABLE sessions")
        assert nursery.records.state is RecordsState.STOPPED

    _run(story())


def test_a_gateway_that_nobody_asked_has_loaded_nothing_of_it() -> None:
    script = "import sys, gateway.assembly, gateway.transports.operator_api\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    names = set(loaded.stdout.decode().split())
    assert not names & {"chdb", "clickhouse_connect", "pandas", "pyarrow", "lz4"}
    assert "gateway.stores.records.feeding" not in names


def question() -> Question[SeriesPoint]:
    return series(Span(tenant="default", from_ms=0, to_ms=1), 1_000)


def test_a_page_is_told_in_time_that_the_records_only_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records_module, "PAGE_WAIT_S", 0.01)

    async def story() -> None:
        nursery = Nursery()
        nursery.is_slow = True
        with pytest.raises(AcpFailure, match="they are starting: try again") as refused:
            await nursery.records.rows(question())
        assert refused.value.error.reason == Reason.UNAVAILABLE.value
        assert refused.value.error.retry_after_ms == RETRY_AFTER_MS
        assert nursery.records.state is RecordsState.STARTING  # the question began it
        await nursery.records.close()

    _run(story())


def test_a_page_without_the_extra_says_what_to_install_as_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    async def story() -> None:
        nursery = Nursery()
        with pytest.raises(AcpFailure, match="pip install") as refused:
            await nursery.records.rows(question())
        assert refused.value.error.reason == Reason.UNAVAILABLE.value

    _run(story())


@pytest.mark.parametrize(
    ("code", "reason", "says"), [(159, "UNAVAILABLE", "a shorter window"), (47, "INTERNAL", "")]
)
def test_a_limit_is_the_windows_fault_and_any_other_refusal_ours(
    code: int, reason: str, says: str
) -> None:
    failure = refused_question(QueryFailed("no", code)).error
    assert failure.reason == reason
    assert says in failure.message
