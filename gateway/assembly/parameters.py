"""From settings to the live governance parameters, and to the row that goes by them."""

from gateway.assembly import overload
from gateway.board.audit import AuditLog
from gateway.config.settings import Settings
from gateway.governance.backoff import Backoff
from gateway.governance.parameters import Parameters, Queues
from gateway.governance.queue_delay import QueueDelay
from gateway.governance.rules import BreakerRules, HedgeRules, RetryTokenRules, Rules, Slots
from gateway.governance.wish import Wish
from gateway.runtime.absence import Absence
from gateway.runtime.admitting import Admitting
from gateway.runtime.clock import Clock
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Driver
from gateway.runtime.executors import Executors
from gateway.runtime.intake import Intake
from gateway.runtime.opening import Openings
from gateway.runtime.parameters import LiveParameters, ParameterBook
from gateway.runtime.queueing import Admission
from gateway.runtime.registry import Registry
from gateway.runtime.signs import Signs
from gateway.runtime.target_views import TargetView, TargetViews
from gateway.stores.durable import Durable
from gateway.stores.ports import Store
from gateway.telemetry.logs import get_log

log = get_log("gateway")


def parameters_of(settings: Settings) -> Parameters:
    """The governance parameters that this configuration means, until somebody changes them."""
    limits, retry = settings.limits, settings.retry
    queues, is_on = limits.queues, settings.governance.enabled
    return Parameters(
        breaker=BreakerRules(enabled=is_on),
        retry_tokens=RetryTokenRules(enabled=is_on),
        target=Slots(limit=limits.target_concurrency, max_waiting=limits.target_max_queued),
        queues=Queues(
            plan=Slots(limit=queues.plan.concurrency, max_waiting=queues.plan.max_queued),
            tool=Slots(limit=queues.tool.concurrency, max_waiting=queues.tool.max_queued),
            llm=Slots(limit=queues.llm.concurrency, max_waiting=queues.llm.max_queued),
        ),
        backoff=backoff_of(settings),
        hedge=HedgeRules(share=retry.hedge_share, after_ms=retry.hedge_after_ms),
        overload=QueueDelay(
            target_ms=settings.overload.queue_target_ms,
            interval_ms=settings.overload.queue_interval_ms,
        ),
        retry_budget=retry.session_budget,
    )


def backoff_of(settings: Settings) -> Backoff:
    return Backoff(base_ms=settings.retry.backoff_base_ms, max_ms=settings.retry.backoff_max_ms)


class RowParts:
    """The row of one gateway and those around it, by name."""

    def __init__(self, clock: Clock, registry: Registry, *, parameters: LiveParameters) -> None:
        self.parameters = parameters
        self.admission = Admission(clock)
        self.views = TargetViews(
            self.admission, rules_for=parameters.rules_for, everybody=registry.instances
        )
        self.signs = Signs(registry, clock, everybody=registry.instances)
        self.intake: Intake | None = None
        self.clock = clock
        self.registry = registry
        parameters.on_change = lambda: self.admission.renew(self._rules_of)

    def book(self, store: Store, *, durable: Durable, audit: AuditLog) -> ParameterBook:
        """What operators changed, read back."""
        book = ParameterBook(self.parameters, store, durable=durable, audit=audit, clock=self.clock)
        for text in book.unreadable:
            log.warning("parameters_unreadable", what=text)
        return book

    def targets(self) -> tuple[TargetView, ...]:
        """How each instance stands now."""
        return self.views.of(self.registry.instances(), at_ms=self.clock.now_ms())

    def _rules_of(self, wish: Wish) -> Rules:
        """What holds for this wish now; the old rules, when its instance has left."""
        target = self.registry.instance(wish.instance)
        return self.parameters.rules_for(target) if target is not None else wish.rules

    def lead(self, openings: Openings) -> None:
        """New sessions pass the gate, and begin with the budget and the waits that hold then."""
        parameters = self.parameters
        openings.intake = self.intake
        openings.retry_budget = lambda: parameters.retry_budget
        openings.backoff = lambda: parameters.current.parameters.backoff

    def executors(self, driver: Driver, contexts: ContextMaker, *, settings: Settings) -> Executors:
        """The driver's hands over this row; the driver has them afterwards."""
        grace, registry = settings.grace, self.registry
        absence = Absence(
            registry,
            self.clock,
            pin_grace_ms=grace.pin_grace_ms,
            attach_grace_ms=grace.attach_grace_ms,
        )
        admitting = Admitting(
            driver,
            admission=self.admission,
            absence=absence,
            contexts=contexts,
            rules_for=self.parameters.rules_for,
        )
        self.admission.wake = absence.wake = admitting.wake
        self.admission.demand = overload.demand(settings, registry, parameters=self.parameters)
        overload.listen(settings, admitting=admitting, driver=driver)
        self.intake = overload.intake(self.admission, driver, parameters=self.parameters)
        admitting.signals_of, driver.signals = self.signs.of_attempt, self.signs.text
        driver.backoff_of = self.parameters.backoff_of
        driver.executor = Executors(driver, registry, admitting=admitting, contexts=contexts)
        return driver.executor
