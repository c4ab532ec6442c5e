"""One world: a gateway over all its lives, its clients, its components, its weather, its laws.

Everything in it hangs on the scenario's name; nothing in it knows the machine it runs on. It ends
when every client has seen enough, every session has ended and every trajectory has left.
"""

from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from acp_spec.model.enums import TERMINAL_SESSION
from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import payload
from acp_spec.model.session import CompleteOperation, Opened, SessionView
from gateway.engine.states import parse_version
from gateway.runtime.clock import SeededChance
from gateway.simulation import last_checks, random_workflows, weather
from gateway.simulation.clients import Client, Gone
from gateway.simulation.dice import Dice
from gateway.simulation.house import Ground, House, MakeHouse
from gateway.simulation.laws import Laws
from gateway.simulation.machine import Lines, Machine, SyncSteps
from gateway.simulation.reading_back import read_back
from gateway.simulation.scenario import Lived, Scenario
from gateway.simulation.town import Faults, Town
from gateway.simulation.virtual_loop import Process, VirtualLoop
from gateway.simulation.wire import SimulatedDialer
from gateway.stores.errors import StoreError

T = TypeVar("T")

OPENING_S: Final = (3.0, 0.3, 3.0, 14.0)
"""Sessions of a world open within this time, by its number: mostly one after the other; all at
once; or over so long that a breaker opens, is probed and closes among them."""
END_S: Final = 400.0
"""Virtual time after which what has not ended never will: ten times the longest deadline."""
SETTLE_S: Final = 3.0
"""After the end: late answers, cancels of what was overdue."""
HINT_MS_MAX: Final = 300_000
"""Nothing here takes five minutes to get well."""
NETWORK_S: Final = 0.001
COME_S: Final = 0.1


class World:
    """`live()` once."""

    def __init__(self, scenario: Scenario, make: MakeHouse) -> None:
        self.scenario = scenario
        self._make = make
        world = Process("world")
        # What a loop does with sockets, pipes and signals is left out: nothing here has any.
        self.loop = VirtualLoop(world)  # type: ignore[abstract]
        self.laws = Laws(lambda: self.loop.now_s)
        self.machine = Machine(self.loop, self.laws, dice=Dice(scenario.name, "machine"))
        self.laws.wall_ms = self.machine.clock.now_ms
        self.loop.on_failure = self._fault
        kinds = Faults(scenario.without)
        self.town = Town(self.loop, self.laws, name=scenario.name, faults=kinds)
        self.town.call_back = self._call_back
        self._dice = Dice(scenario.name, "world")
        self._chance = SeededChance(scenario.seed * 1_000_003 + scenario.world)
        self._house: House | None = None
        self._is_serving = False
        self.files = scenario.files()
        self._asked: dict[Any, Process] = {}
        self._busy = 0
        self.lives = 0

    # ---- the whole story ---------------------------------------------------------------------

    def live(self) -> Lived:
        """From the first start to the last check."""
        scenario = self.scenario
        opening_s = OPENING_S[scenario.world % len(OPENING_S)]
        self._boot(is_first=True)
        for number in scenario.numbers():
            dice = Dice(scenario.name, "client", number)
            self._busy += 1
            self.after(COME_S + dice.random() * opening_s, partial(self._comes, number, dice))
        for at_s, kind, dice in weather.schedule(
            scenario.name, max(1.0, opening_s), without=scenario.without
        ):
            self._busy += 1
            self.after(COME_S + at_s, partial(self._weather, kind, dice))
        self._come_to_rest()
        if not self.laws.violations:
            self._check_rest()
        return self._lived()

    def _come_to_rest(self) -> None:
        """Until all is over and stays so: a disk that fails at its k-th write may do so only now,
        and the life after that one comes to rest in its turn."""
        while True:
            lives = self.lives
            self.loop.run(END_S, self._is_over)
            self._check_ended()
            if self.laws.violations:
                return
            self.loop.run(self.loop.now_s + SETTLE_S, lambda: False)
            if self._is_serving and self.lives == lives:
                return

    def _is_over(self) -> bool:
        if self._busy or self.laws.open_sessions or self.laws.violations:
            return bool(self.laws.violations)
        house = self._house
        if not self._is_serving or house is None:
            return False
        return house.lag() == 0 and house.beside() == 0

    def _lived(self) -> Lived:
        books = self.laws.books.values()
        met = Counter(kind for book in books for kind in book.faults)
        self.machine.process.is_alive = False
        self.loop.bury(self.machine.process)
        self.loop.bury(self.loop.world)
        return Lived(
            scenario=self.scenario,
            violations=self.laws.violations,
            sessions=len(self.laws.books),
            calls=[len(book.calls) for book in books],
            faulty=sum(bool(book.faults) for book in books),
            met=met,
            digest=self.laws.digest,
            lives=self.lives,
            ends=Counter(book.status.value for book in books),
            steps=self.loop.steps,
            virtual_s=self.loop.now_s,
            lines=self.machine.shelf.lines(),
            twins=self.laws.counts["twins"],
        )

    # ---- lives of the gateway ----------------------------------------------------------------

    def _boot(self, *, is_first: bool = False) -> None:
        """The next life begins: it is built and recovers, like any start."""
        self.lives += 1
        machine = self.machine
        process = machine.process
        self.loop.soon_in(process, self._begin_life, is_first)

    def _begin_life(self, is_first: bool) -> None:
        self._is_up = True
        machine = self.machine
        ground = Ground(
            store=machine.disk,
            clock=machine.clock,
            chance=self._chance,
            dialer=SimulatedDialer(self.town, machine.process),
            worker=SyncSteps(machine),
            trajectories=Lines(machine),
            watcher=self.laws,
            variant=self.scenario.world,
        )
        house = self._house = self._make(ground)
        if not is_first:
            read_back(self.laws, machine.disk)
        self.laws.note(f"life {self.lives}")
        task = self.loop.create_task(self._start(house, is_first=is_first))
        task.add_done_callback(self._started)

    async def _start(self, house: House, *, is_first: bool) -> None:
        await house.start()
        if is_first:
            await self._furnish(house)

    async def _furnish(self, house: House) -> None:
        """What an operator does before the first session: components, workflows."""
        for place in self.town.places.values():
            await weather.register(house, place)
        for number in self.files:
            await self.store_workflow(house, number, version=random_workflows.FIRST_VERSION)

    async def store_workflow(self, house: House, number: int, *, version: str) -> None:
        text = random_workflows.workflow_text(number, self.scenario.recovery, version=version)
        workflow = random_workflows.parsed(text)
        self.laws.workflows[workflow.source_digest] = workflow
        await house.workflows.put(workflow.name, workflow.version, source=text)

    def _started(self, task: Any) -> None:
        if task.cancelled():
            return
        fault = task.exception()
        if fault is None:
            self._is_serving = True
        elif not isinstance(fault, StoreError):
            self._fault("the gateway does not start", fault)

    def die(self, *, power_cut: bool, down_s: float) -> None:
        """Kill this life now; the next one begins a little later."""
        machine = self.machine
        process = machine.process
        if not self._is_up:
            return
        process.is_alive = self._is_up = False
        self._is_serving = False
        self._house = None
        self.laws.note("death")
        self._busy += 1
        self.loop.soon_in(self.loop.world, self._bury, power_cut, down_s)

    def _bury(self, power_cut: bool, down_s: float) -> None:
        self.machine.next_life(power_cut=power_cut)
        self.laws.life_ended(power_cut=power_cut)
        for future in tuple(self._asked):
            del self._asked[future]
            future.set_exception(Gone())
        self.after(down_s, self._next)

    def _next(self) -> None:
        self._busy -= 1
        self._boot()

    def stop_gracefully(self, down_s: float) -> None:
        """SIGTERM; whatever it has not finished by itself after some time is killed."""
        house, process = self._house, self.machine.process
        if house is None or not process.is_alive:
            return
        self._is_serving = False
        self._busy += 1

        def gone(_: object = None) -> None:
            self.die(power_cut=False, down_s=down_s)

        def over() -> None:
            self._busy -= 1
            if self.machine.process is process:
                gone()

        task = self.loop.begin(process, house.stop())
        task.add_done_callback(gone)
        self.after(15.0, over)

    # ---- asking the gateway ------------------------------------------------------------------

    async def ask(
        self, work: Callable[[House], Coroutine[Any, Any, T]], *, promised: str = ""
    ) -> T:
        """A request: it runs in the gateway; its answer comes back, or nothing ever does."""
        house, process = self._house, self.machine.process
        if house is None or not self._is_serving:
            raise Gone
        future = self.loop.create_future()
        self._asked[future] = process
        answered = self._answered(partial(work, house), future, promised=promised)
        self.loop.begin(process, answered)
        found: T = await future
        return found

    async def _answered(
        self, work: Callable[[], Coroutine[Any, Any, T]], future: Any, *, promised: str
    ) -> None:
        """In the gateway: its answer is judged as it leaves, then it is on its way."""
        try:
            found = await work()
        except (AcpFailure, StoreError) as failure:
            self._judge_refusal(failure)
            answer = partial(self._fails, future, failure)
        else:
            self._judge_answer(found, promised)
            answer = partial(self._hears, future, found)
        self.loop.later(NETWORK_S, answer, of=self.loop.world)

    def _hears(self, future: Any, found: object) -> None:
        if self._asked.pop(future, None) is not None:
            future.set_result(found)

    def _fails(self, future: Any, failure: Exception) -> None:
        if self._asked.pop(future, None) is not None:
            future.set_exception(failure if isinstance(failure, AcpFailure) else Gone())

    def _judge_refusal(self, failure: Exception) -> None:
        """Whoever is told when to return is told a time that makes sense."""
        after_ms = failure.error.retry_after_ms if isinstance(failure, AcpFailure) else None
        if after_ms is not None and after_ms > HINT_MS_MAX:
            self.laws.broken("a hint to return makes sense", f"in {after_ms} ms: {failure}")

    def _judge_answer(self, found: object, promised: str) -> None:
        """What leaves must be on disk: openings, ends, and what a request asked to be kept."""
        version = getattr(found, "state_version", "")
        if promised and version:
            self.laws.leaves(promised, _sequence(version))
        if isinstance(found, tuple):
            found = found[0]
        if isinstance(found, Opened):
            self.laws.leaves(found.session_id, _sequence(found.state_version))
        elif isinstance(found, SessionView) and found.status in TERMINAL_SESSION:
            self.laws.end_leaves(found.session_id, found.status)

    def told(self, session_id: str, view: SessionView | Opened) -> None:
        if view.status in TERMINAL_SESSION:
            self.laws.told_end(session_id, view.status)
        else:
            self.laws.told(session_id, 1)

    def told_version(self, session_id: str, version: str) -> None:
        self.laws.told(session_id, _sequence(version))

    def told_erased(self, session_id: str) -> None:
        self.laws.books[session_id].is_told_erased = True

    def order(self, work: Callable[[House], Coroutine[Any, Any, None]]) -> None:
        """What an operator or a component asks; nobody minds when it fails."""

        async def asked() -> None:
            try:
                await self.ask(work)
            except (Gone, AcpFailure):
                self.after(0.5, lambda: self.order(work) if self._busy else None)

        self.loop.begin(self.loop.world, asked())

    def _call_back(self, call_id: str, token: str) -> None:
        result = CompleteOperation(output=payload(b'{"done":2}'))

        async def call_back(house: House) -> None:
            await house.sessions.complete_operation(call_id, token, result=result)

        async def asked() -> None:
            try:
                await self.ask(call_back)
            except (Gone, AcpFailure):
                return  # it is polled too

        self.loop.begin(self.loop.world, asked())

    # ---- clients and weather -----------------------------------------------------------------

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        """Let the world do something later."""
        self.loop.later(delay_s, do, of=self.loop.world)

    def _comes(self, number: int, dice: Dice) -> None:
        client = Client(self, number, dice=dice, files=self.files)
        task = self.loop.begin(self.loop.world, client.live())
        task.add_done_callback(self._leaves)

    def _leaves(self, task: Any) -> None:
        self._busy -= 1
        if not task.cancelled() and task.exception() is not None:
            self._fault("a client failed", task.exception())

    def _weather(self, kind: str, dice: Dice) -> None:
        self._busy -= 1
        if not self._is_serving:
            return
        self.strikes(kind)
        weather.STORIES[kind](self, dice)

    def clock_was_set(self, by_ms: int) -> None:
        """Sessions may take so much longer by the wall clock, and keys live so much longer."""
        self.laws.slack_ms += abs(by_ms) + 5_000
        self.laws.was_set_back = self.laws.was_set_back or by_ms < 0

    def strikes(self, kind: str) -> None:
        self.laws.note(kind)
        if kind not in weather.TELL_THEMSELVES:
            self.laws.struck_all(kind)

    def _fault(self, what: str, cause: BaseException | None) -> None:
        text = f"{what}: {type(cause).__name__}: {cause}" if cause else what
        self.laws.broken("no fault of ours", text)
        self.laws.causes.append(cause)

    # ---- the last checks ---------------------------------------------------------------------

    def _check_ended(self) -> None:
        """Every session ended in its time, and everything that is owed has left."""
        for session_id, book in self.laws.books.items():
            if not book.is_over and not book.is_erased:
                self.laws.broken("every session ends", "it is open still", session=session_id)
        if self._busy and not self.laws.violations:
            self.laws.broken("every session ends", "a client waits for ever")
        if self._house is not None and self._house.beside() and not self.laws.violations:
            self.laws.broken("every session ends", "a twin is open still")
        if not self._is_serving and not self.laws.violations:
            self.laws.broken("every session ends", "the gateway does not come back")

    def _check_rest(self) -> None:
        """At rest: nothing is held, nothing is owed, the journal explains itself."""
        house = self._house
        assert house is not None, "a world ends while its gateway serves"
        for held in house.held():
            self.laws.broken("permits are closed", held)
        last_checks.lines(self.laws)
        last_checks.ledgers(self.laws, self.town)
        last_checks.journals(self.laws, self.machine.disk)


def _sequence(version: str) -> int:
    """A version counts every event once."""
    parts = parse_version(version)
    assert parts is not None, "the gateway writes versions"
    return sum(parts)
