"""The records as the gateway sees them: a process of its own, started when somebody asks first.

It is watched, killed when it hangs, and started again with growing pauses. Whatever becomes of it,
sessions go on: it is asked from threads of its own, every wait has an end, and what it has not got
yet stays in the trajectory log. Nothing of its libraries is imported before the first use.
"""

import asyncio
import enum
import importlib.util
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.lasting import broken_off
from gateway.telemetry.logs import get_log

if TYPE_CHECKING:
    from gateway.stores.records.endpoint import Endpoint
    from gateway.stores.records.feed_status import FeedingStatus
    from gateway.stores.records.questions.question import Question, Row
    from gateway.stores.records.reach import Answer, Limits, QueryFailed, Reader

T = TypeVar("T")

START_WAIT_S: Final = 20.0
"""A question waits so long for a process that starts; opening 2 million sessions takes seconds."""

PAGE_WAIT_S: Final = 4.0
"""A page waits less: it says that they start, and asks again."""

PAGE_MS: Final = 9_000
"""A page's question has so long, what it waited for the start included: the process yields to the
gateway, and is slow just when somebody wants to look."""

PAGE_ROWS_MAX: Final = 10_000

READY_S: Final = 120.0
"""A start that takes longer is taken for hung: it may wait 30 s for a dying predecessor."""

PING_EVERY_S, PING_TIMEOUT_S, HUNG_AFTER = 2.0, 5.0, 3
"""A process that answers no ping three times in a row hangs; a busy one answers late."""

RETRY_AFTER_MS: Final = 1_000
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.5, 30.0
STOP_S: Final = 10.0
"""The batch under way may end; then it is killed, which loses nothing."""

THREADS: Final = 4
EXIT_NO_EXTRA: Final = 7
NEEDED: Final = ("clickhouse_connect", "chdb")
LIMIT_CODES: Final = frozenset({158, 159, 160, 202, 241, 307, 396})
"""Of ClickHouse: too many rows, too slow, too many at once, too much memory, too large a result."""

OVER_A_LIMIT: Final = "the store refuses the question; a shorter window asks for less"
HINT: Final = "the records are an extra: pip install 'acp-decision-gateway[records]'"

log = get_log("gateway.records")


class RecordsState(enum.Enum):
    """Whether the process runs."""

    STOPPED = "STOPPED"
    STARTING = "STARTING"
    UP = "UP"


class RunningChild(Protocol):
    """A started process."""

    pid: int

    async def ready(self) -> "Endpoint":
        """Once it can be asked. Raises EOFError if it ends before."""

    async def wait(self) -> int:
        """Its exit code."""

    def stop(self) -> None:
        """Let it end after the batch under way."""

    def kill(self) -> None:
        """End it at once, also while it is stopped."""


class _Life(NamedTuple):
    """One life of the process: where it is asked, and with what."""

    endpoint: "Endpoint"
    reader: "Reader"


Launch = Callable[[], Awaitable[RunningChild]]


class Records:
    """One store of records. Used on the event loop's thread; `close` it with the gateway."""

    def __init__(
        self,
        launch: Launch,
        *,
        cluster: "Callable[[], Endpoint | None]",
        most: "Callable[[], Limits]",
        on_start: Callable[[], None],
    ) -> None:
        self._launch = launch
        self._cluster = cluster
        self._most = most
        self._on_start = on_start
        self._up = asyncio.Event()
        self._child: RunningChild | None = None
        self._life: _Life | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self.starts = 0
        self.problem = ""
        self.feed: FeedingStatus | None = None
        """As it stood a moment ago; metrics look at it."""

    @property
    def state(self) -> RecordsState:
        """Whether it runs."""
        if self._keeper is None:
            return RecordsState.STOPPED
        return RecordsState.UP if self._up.is_set() else RecordsState.STARTING

    async def query(self, sql: str, *, rows: int = 0, timeout_ms: int = 0) -> "Answer":
        """A question's whole answer. INVALID_REQUEST says what is wrong with it."""
        from gateway.stores.records.guard import refusal
        from gateway.stores.records.reach import Limits

        why = refusal(sql)
        if why:
            raise invalid_request(why)
        most = self._most()
        limits = Limits(
            timeout_ms=min(timeout_ms or most.timeout_ms, most.timeout_ms),
            rows=min(rows or most.rows, most.rows),
        )
        life = await self._started()
        return await self._asked(lambda: life.reader.query(sql, limits), limits.timeout_ms / 1000)

    async def rows(self, question: "Question[Row]") -> "list[Row]":
        """What one of our own questions gives; UNAVAILABLE says why not, and what to do."""
        from gateway.stores.records.reach import Limits

        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            life = await self._started(PAGE_WAIT_S)
        except AcpFailure as problem:
            if problem.error.reason != Reason.UNIMPLEMENTED.value:
                raise
            raise _unavailable(HINT) from None
        left_ms = PAGE_MS - round((clock() - began) * 1000)
        # Our questions bound their rows themselves; what is set is for people's.
        most = Limits(timeout_ms=min(self._most().timeout_ms, left_ms), rows=PAGE_ROWS_MAX)
        return await self._asked(
            lambda: life.reader.rows(question, most),
            most.timeout_ms / 1000,
            refused=refused_question,
        )

    async def told(self, path: str) -> bytes:
        """One of the process's own paths: `status`, `verify`, `backfill`."""
        from gateway.stores.records.reach import ask

        life = await self._started()
        return await self._asked(lambda: ask(life.endpoint, path), 0)

    def start(self) -> None:
        """Begin to keep the process running; a second call changes nothing."""
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise AcpFailure(error(Reason.UNIMPLEMENTED, HINT, boundary=Boundary.GATEWAY))
        if self._keeper is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="records")
            self._keeper = asyncio.create_task(self._keep(), name="records")
            self._on_start()

    async def close(self) -> None:
        """Stop the process; what it was doing it does again at its next start."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await broken_off(keeper)
        await self._end()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    # ---- asking ----------------------------------------------------------------------------------

    async def _started(self, wait_s: float = START_WAIT_S) -> "_Life":
        """The life that runs now, which may end while it is asked: then it does not answer."""
        self.start()
        try:
            async with asyncio.timeout(wait_s):
                await self._up.wait()
        except TimeoutError:
            said = self.problem or "they are starting: try again in a moment"
            raise _unavailable(said) from None
        if self._life is None:  # it ended in this very moment
            raise _unavailable(self.problem or "they are started again: try in a moment")
        return self._life

    async def _asked(
        self,
        ask: Callable[[], T],
        within_s: float,
        *,
        refused: "Callable[[QueryFailed], AcpFailure] | None" = None,
    ) -> T:
        """Run it on a thread of the records; whoever hangs there holds up nobody else."""
        from gateway.stores.records.reach import GRACE_S, TIMEOUT_S, QueryFailed, Unreachable

        assert self._threads is not None
        asked = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        try:
            async with asyncio.timeout(within_s + TIMEOUT_S + GRACE_S):
                return await asked
        except QueryFailed as problem:
            raise (refused or _wrong_sql)(problem) from None
        except Unreachable as problem:
            raise _unavailable(str(problem)) from None
        except TimeoutError:
            raise _unavailable("they do not answer in time") from None

    # ---- the process -----------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Start, watch, start again. Ends with `close`, or where starting again cannot help."""
        failures = 0
        while True:
            try:
                code = await self._live()
            except (OSError, EOFError, TimeoutError, ValueError, ImportError) as problem:
                # Also what a wrong setting raises: ended by it, they would be starting for ever.
                code, self.problem = -1, f"they do not start: {problem}"
            was_up = self._up.is_set()
            await self._end()
            if code == EXIT_NO_EXTRA:
                self.problem = HINT
                log.error("records_extra_missing", hint=HINT)
                return
            failures = 0 if was_up else failures + 1
            wait_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(failures, 10))
            log.warning("records_ended", code=code, again_in_s=wait_s, problem=self.problem)
            await asyncio.sleep(wait_s)

    async def _live(self) -> int:
        """One life of the process; its exit code."""
        from gateway.stores.records.reach import Reader

        child = self._child = await self._launch()
        self.starts += 1
        async with asyncio.timeout(READY_S):
            endpoint = await child.ready()
        reader = Reader(self._cluster() or endpoint, timeout_ms_max=self._most().timeout_ms)
        self._life = _Life(endpoint, reader)
        self.problem = ""
        self._up.set()
        log.info("records_up", pid=child.pid, starts=self.starts)
        return await self._watched(child, endpoint)

    async def _watched(self, child: RunningChild, endpoint: "Endpoint") -> int:
        """Until it ends, or is killed because it hangs."""
        from gateway.stores.records.reach import look

        ended = asyncio.ensure_future(child.wait())
        loop, silent = asyncio.get_running_loop(), 0
        try:
            while True:
                done, _ = await asyncio.wait([ended], timeout=PING_EVERY_S)
                if done:
                    return ended.result()
                self.feed = await loop.run_in_executor(
                    self._threads, lambda: look(endpoint, timeout_s=PING_TIMEOUT_S)
                )
                silent = 0 if self.feed is not None else silent + 1
                if silent >= HUNG_AFTER:
                    self.problem = "they hung, and are started again"
                    child.kill()
        finally:
            ended.cancel()

    async def _end(self) -> None:
        """Make sure that no process is left."""
        self._up.clear()
        child, self._child, self._life = self._child, None, None
        self.feed = None
        if child is None:
            return
        child.stop()
        try:
            async with asyncio.timeout(STOP_S):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


def _wrong_sql(problem: "QueryFailed") -> AcpFailure:
    return invalid_request(f"sql: {problem}")


def refused_question(problem: "QueryFailed") -> AcpFailure:
    """A limit is the window's fault; anything else is ours."""
    if problem.code in LIMIT_CODES:
        return _unavailable(f"{OVER_A_LIMIT}: {problem}")
    return AcpFailure(error(Reason.INTERNAL, f"records: {problem}", boundary=Boundary.GATEWAY))


def _unavailable(why: str) -> AcpFailure:
    message = f"the records are not there now: {why}"
    return AcpFailure(
        error(Reason.UNAVAILABLE, message, boundary=Boundary.GATEWAY, retry_after_ms=RETRY_AFTER_MS)
    )


class RecordsQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question. `max_rows` and `timeout_ms`: less than the gateway allows; 0: all of it.

    `min_versions`: session -> the least `state_version` to answer from; 409 STALE_STATE otherwise.
    """

    sql: str
    max_rows: int = 0
    timeout_ms: int = 0
    min_versions: dict[str, str] = {}
