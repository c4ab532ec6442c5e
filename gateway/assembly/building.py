"""From settings to the parts of one gateway, wired but not yet serving."""

import os
from dataclasses import dataclass

from acp_spec.model.trajectory import Trajectory
from gateway.assembly.archiving import archive_parts, watch_archive
from gateway.assembly.configured import opening_limits, prober_of, spans_of, workflow_of
from gateway.assembly.dashboard import Surroundings, dashboard_of
from gateway.assembly.governing import Measurable, audit_tokens, board_of, evidences_of
from gateway.assembly.identity import callback_secret, gateway_id
from gateway.assembly.lineages import lineages_of
from gateway.assembly.outside import Outside
from gateway.assembly.parameters import RowParts, backoff_of, parameters_of
from gateway.assembly.recording import records_of
from gateway.assembly.rewarding import Rewarding, rewarding_of
from gateway.assembly.rolling import Rolling, rolling_of
from gateway.assembly.understanding import forget_everywhere, meaning_of, review
from gateway.assembly.unready import reasons, store_damaged, store_failed
from gateway.assembly.watching import (
    watch,
    watch_beside,
    watch_fallbacks,
    watch_row,
    watch_spans,
)
from gateway.board.audit import AuditLog
from gateway.config.credentials import resolve_credential
from gateway.config.settings import Settings
from gateway.governance.breaker import Phase
from gateway.runtime.admission import RegistryLimits
from gateway.runtime.archive import Archive
from gateway.runtime.board import BoardParts
from gateway.runtime.clock import Chance, Clock
from gateway.runtime.committer import Committer
from gateway.runtime.context import ContextMaker
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.driver import Defaults, Driver, DriverParts, Observer
from gateway.runtime.erasing import Erasing
from gateway.runtime.executors import Executors
from gateway.runtime.fallback_drills import DrillParts, Drills
from gateway.runtime.fallbacks import Fallbacks
from gateway.runtime.live import Erased, LiveSessions
from gateway.runtime.meaning import Meaning
from gateway.runtime.observing import Observers, Telemetry
from gateway.runtime.opening import Openings
from gateway.runtime.outbox import Outbox
from gateway.runtime.pages import Pages
from gateway.runtime.parameters import LiveParameters
from gateway.runtime.prober import Prober
from gateway.runtime.reattach import Orphans
from gateway.runtime.registry import Registry
from gateway.runtime.replaced import Replaced
from gateway.runtime.retention import Retention
from gateway.runtime.rollout_traffic import RolloutEnds
from gateway.runtime.rollouts import RolloutParts
from gateway.runtime.service import ServiceParts, SessionService
from gateway.runtime.sla_watch import SlaWatch
from gateway.runtime.streams import Streams
from gateway.runtime.tokens import Tokens
from gateway.runtime.twins import Twins
from gateway.runtime.unknown_values import UnknownValues
from gateway.runtime.workflow_use import WorkflowUse
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import store_path
from gateway.stores.event_codec import Sealer
from gateway.stores.ports import Store
from gateway.stores.rocksdb import RocksStore
from gateway.stores.trajectory_log import TrajectoryLog
from gateway.stores.watched import WatchedStore
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.spans import SpanSink
from gateway.transports.address_guard import AddressGuard
from gateway.transports.attach_hub import AttachHub, AttachOptions
from gateway.transports.auth import Gate, served_hosts
from gateway.transports.dialer import ComponentDialer
from gateway.transports.ports import Services

log = get_log("gateway")

INSTANCE_ID_BYTES = 16


@dataclass(slots=True, kw_only=True)
class Gateway:
    """The parts that are started, watched and stopped by name."""

    settings: Settings
    store: Store
    committer: Committer
    registry: Registry
    prober: Prober
    driver: Driver
    executors: Executors
    orphans: Orphans
    hub: AttachHub
    erasing: Erasing
    contexts: ContextMaker
    outbox: Outbox
    sessions: SessionService
    services: Services
    gate: Gate
    metrics: Metrics
    spans: SpanSink
    unready: set[str]
    rolling: Rolling
    twins: Twins
    rewarding: Rewarding


@dataclass(slots=True, kw_only=True)
class _Ground:
    """What everything else stands on."""

    settings: Settings
    outside: Outside
    store: Store
    sealer: Sealer
    committer: Committer
    clock: Clock
    chance: Chance
    metrics: Metrics
    audit: AuditLog
    sla: SlaWatch
    meaning: Meaning
    unknown: UnknownValues
    fallbacks: Fallbacks
    rewarding: Rewarding
    unready: set[str]


@dataclass(slots=True)
class _Kept:
    """What operators put in and the gateway keeps."""

    registry: Registry
    workflows: Workflows
    tokens: Tokens
    rolling: Rolling
    row: RowParts
    contexts: ContextMaker
    driver: Driver


def build(
    settings: Settings, *, store: Store | None = None, outside: Outside | None = None
) -> Gateway:
    """Everything wired. Raises StoreBusy, StoreCorrupt ... when the data directory says no, and
    ModelUnusable for a model of meanings that cannot be loaded."""
    outside = outside or Outside()
    meaning = meaning_of(settings.semantics)
    unready = {"recovering sessions"}
    store = WatchedStore(
        store or RocksStore(store_path(settings.data_dir), salvage=settings.journal.salvage),
        lambda problem: store_damaged(problem, unready),
    )
    metrics, clock, chance = Metrics(), outside.clock, outside.chance
    sealer = Sealer(store)
    committer = Committer(
        store, sealer, sync=settings.journal.sync, metrics=metrics, worker=outside.worker
    )
    audit = AuditLog(store, committer, now_ms=clock.now_ms)
    if audit.spoilt:
        log.error("audit_entry_unreadable", number=audit.head[0], do="acp audit verify")
    ground = _Ground(
        settings=settings,
        outside=outside,
        store=store,
        sealer=sealer,
        committer=committer,
        clock=clock,
        chance=chance,
        metrics=metrics,
        audit=audit,
        sla=SlaWatch(store, committer, audit=audit, metrics=metrics, now_ms=clock.now_ms),
        meaning=meaning,
        unknown=UnknownValues(store, committer, clock=clock, metrics=metrics),
        fallbacks=Fallbacks(
            store,
            committer,
            clock=clock,
            metrics=metrics,
            session_deadline_ms=settings.deadlines.session_deadline_ms,
        ),
        rewarding=rewarding_of(
            settings.rewards, store, durable=committer, audit=audit, clock=clock
        ),
        unready=unready,
    )
    data_dir = str(settings.data_dir)
    committer.on_failure(lambda problem: store_failed(problem, unready, data_dir=data_dir))
    registry = _registry(ground)
    workflows = Workflows(store, committer, clock=clock, catalog=registry.catalog)
    return _sessions(ground, registry, workflows=workflows)


def _sessions(ground: _Ground, registry: Registry, *, workflows: Workflows) -> Gateway:
    settings, store, committer = ground.settings, ground.store, ground.committer
    live = LiveSessions(
        store,
        ground.sealer,
        workflow_of=workflow_of(workflows),
        limit=settings.limits.live_sessions,
    )
    spans = spans_of(settings)
    watch_spans(ground.metrics, spans)
    outbox = _outbox(ground, live)
    rolling = _rolling(ground, registry, workflows=workflows)
    replaced = Replaced()
    own = Telemetry(ground.metrics, spans), ground.sla, ground.unknown, ground.fallbacks, replaced
    others = *ground.rewarding.observers, *ground.outside.observers
    observer = Observers(*own, *others, RolloutEnds(rolling.traffic))
    driver = _driver(ground, live, registry=registry, observer=observer, outbox=outbox)
    contexts = _contexts(ground)
    ground.rewarding.connect(registry, contexts, tell=driver.tell)
    row = _row(ground, registry)
    executors = row.executors(driver, contexts, settings=settings)
    executors.admitting.bar, ground.sla.tell = ground.sla.bar, driver.tell
    archive = _archive(ground, contexts)
    erasing = _erasing(ground, driver, outbox=outbox, archive=archive)
    openings = _openings(ground, driver, workflows=workflows)
    row.lead(openings)
    twins = rolling.stand_before(driver, executors, openings=openings, erasing=erasing)
    sessions = _service(ground, driver, openings=openings, erasing=erasing, contexts=contexts)
    kept = _Kept(registry, workflows, _tokens(ground), rolling, row, contexts, driver)
    services = _services(ground, kept, sessions=sessions, outbox=outbox, archive=archive)
    orphans = Orphans(driver, executors, targets=registry, grace_ms=settings.grace.attach_grace_ms)
    hub = _hub(ground, registry, orphans=orphans)
    watch(ground.metrics, driver, executors=executors, outbox=outbox)
    watch_beside(ground.metrics, hub, twins=twins, sla=ground.sla)
    prober = prober_of(settings, registry, clock=ground.clock, failed=ground.metrics.loop_failed)
    replaced.doubt = prober.doubt
    return Gateway(
        settings=settings,
        store=store,
        committer=committer,
        registry=registry,
        prober=prober,
        driver=driver,
        executors=executors,
        orphans=orphans,
        hub=hub,
        erasing=erasing,
        contexts=contexts,
        outbox=outbox,
        sessions=sessions,
        services=services,
        gate=_gate(settings, kept.tokens),
        metrics=ground.metrics,
        spans=spans,
        unready=ground.unready,
        rolling=rolling,
        twins=twins,
        rewarding=ground.rewarding,
    )


def _service(
    ground: _Ground,
    driver: Driver,
    *,
    openings: Openings,
    erasing: Erasing,
    contexts: ContextMaker,
) -> SessionService:
    return SessionService(
        ServiceParts(
            driver=driver,
            openings=openings,
            pages=Pages(ground.store),
            streams=Streams(driver, ground.store, sealer=ground.sealer),
            erasing=erasing,
            contexts=contexts,
            scored=ground.rewarding.scored,
        )
    )


def _tokens(ground: _Ground) -> Tokens:
    return Tokens(ground.store, ground.committer, clock=ground.clock, chance=ground.chance)


def _archive(ground: _Ground, contexts: ContextMaker) -> Archive:
    parts = archive_parts(ground.settings, contexts.gateway_id, clock=ground.clock)
    archive = Archive(parts, ground.store, durable=ground.committer)
    watch_archive(ground.metrics, archive)
    return archive


def _erasing(ground: _Ground, driver: Driver, *, outbox: Outbox, archive: Archive) -> Erasing:
    reviews = ground.rewarding.queue
    forget = forget_everywhere(outbox, ground.unknown, reviews=reviews, archive=archive)
    erasing = Erasing(driver, ground.store, sealer=ground.sealer, forget=forget)
    archive.expire = Retention(driver, erasing, tell=outbox.entomb).expire
    return erasing


def _contexts(ground: _Ground) -> ContextMaker:
    store, chance = ground.store, ground.chance
    return ContextMaker(gateway_id=gateway_id(store, chance), secret=callback_secret(store, chance))


def _rolling(ground: _Ground, registry: Registry, *, workflows: Workflows) -> Rolling:
    parts = RolloutParts(
        store=ground.store,
        durable=ground.committer,
        audit=ground.audit,
        clock=ground.clock,
        metrics=ground.metrics,
    )
    return rolling_of(parts, registry, workflows=workflows)


def _row(ground: _Ground, registry: Registry) -> RowParts:
    parameters = LiveParameters(parameters_of(ground.settings))
    row = RowParts(ground.clock, registry, parameters=parameters)

    def breaker_changed(pin: str, phase: Phase) -> None:
        log.warning("breaker_changed", component=pin, breaker=phase.value)
        ground.metrics.breaker_changed(pin, phase.value)

    row.admission.on_breaker = breaker_changed
    watch_row(ground.metrics, row.views, signs=row.signs)
    return row


def _services(
    ground: _Ground, kept: _Kept, *, sessions: SessionService, outbox: Outbox, archive: Archive
) -> Services:
    """What the borders reach."""
    parts, row, registry = _board_parts(ground), kept.row, kept.registry
    settings = ground.settings
    records = records_of(settings, outbox, metrics=ground.metrics, by=kept.contexts.gateway_id)
    around = Surroundings(settings, ground.metrics)
    open_now = OpenSessions(ground.store, kept.driver.find)
    audit_tokens(kept.tokens, parts.audit)
    board = board_of(settings, parts, registry=registry, workflows=kept.workflows)
    kept.workflows.in_use = WorkflowUse(ground.store, kept.rolling.rollouts).why
    measurable = Measurable(
        workflows=kept.workflows, tokens=kept.tokens, own_url=lambda: kept.contexts.public_url
    )
    return Services(
        sessions=sessions,
        components=registry,
        workflows=kept.workflows,
        tokens=kept.tokens,
        audit=parts.audit,
        board=board,
        rollouts=kept.rolling.rollouts,
        records=records,
        dashboard=dashboard_of(records, sessions, open_now=open_now, row=row, around=around),
        lineages=lineages_of(settings, sessions, driver=kept.driver, records=records),
        archive=archive,
        replays=kept.rolling.replays,
        evidences=evidences_of(settings, board, parts=parts, measurable=measurable),
        sla=ground.sla,
        semantics=review(ground.unknown, kept.workflows, audit=parts.audit, meaning=ground.meaning),
        drills=_drills(ground, kept.workflows),
        rewards=ground.rewarding.book,
        reviews=ground.rewarding.reviews(sessions, settings, audit=parts.audit, clock=ground.clock),
        unready=lambda: reasons(ground.unready, outbox),
        parameters=row.book(ground.store, durable=ground.committer, audit=parts.audit),
        targets=row.targets,
        metrics=ground.metrics,
    )


def _drills(ground: _Ground, workflows: Workflows) -> Drills:
    drills = Drills(
        DrillParts(
            fallbacks=ground.fallbacks,
            workflows=workflows,
            store=ground.store,
            sealer=ground.sealer,
            durable=ground.committer,
            clock=ground.clock,
            metrics=ground.metrics,
        )
    )
    watch_fallbacks(ground.metrics, drills)
    return drills


def _board_parts(ground: _Ground) -> BoardParts:
    return BoardParts(
        store=ground.store,
        durable=ground.committer,
        audit=ground.audit,
        clock=ground.clock,
        chance=ground.chance,
    )


def _driver(
    ground: _Ground,
    live: LiveSessions,
    *,
    registry: Registry,
    observer: Observer,
    outbox: Outbox,
) -> Driver:
    timeout_ms = ground.settings.deadlines.default_timeout_ms
    return Driver(
        DriverParts(
            committer=ground.committer,
            sessions=live,
            targets=registry,
            clock=ground.clock,
            observer=observer,
            record=outbox.record,
            defaults=Defaults(timeout_ms=timeout_ms, backoff=backoff_of(ground.settings)),
            meaning=ground.meaning,
        )
    )


def _hub(ground: _Ground, registry: Registry, *, orphans: Orphans) -> AttachHub:
    settings, chance = ground.settings, ground.chance
    return AttachHub(
        registry,
        orphans,
        after_sync=ground.committer.after_sync,
        new_id=lambda: chance.random_bytes(INSTANCE_ID_BYTES).hex(),
        options=AttachOptions(
            reattach_grace_ms=settings.grace.reattach_grace_ms,
            heartbeat_ms=settings.leases.attach_heartbeat_ms,
            max_response_bytes=settings.limits.max_response_bytes,
        ),
    )


def _registry(ground: _Ground) -> Registry:
    settings = ground.settings
    credentials = settings.outbound.credentials

    def secret_of(name: str) -> str:
        return resolve_credential(credentials[name], environ=os.environ)

    dialer = ground.outside.dialer or ComponentDialer(
        AddressGuard(settings.outbound_networks),
        credentials=secret_of,
        max_response_bytes=settings.limits.max_response_bytes,
        connect_timeout_ms=settings.outbound.connect_timeout_ms,
    )
    return Registry(
        ground.store,
        ground.committer,
        dialer=dialer,
        clock=ground.clock,
        limits=RegistryLimits(
            default_lease_s=settings.leases.default_lease_s,
            max_lease_s=settings.leases.max_lease_s,
            credentials=frozenset(credentials),
        ),
    )


def _openings(ground: _Ground, driver: Driver, *, workflows: Workflows) -> Openings:
    limits = opening_limits(ground.settings)
    openings = Openings(driver, workflows, store=ground.store, chance=ground.chance, limits=limits)
    openings.on_refused_values = ground.unknown.count
    openings.fallbacks = ground.fallbacks
    return openings


def _outbox(ground: _Ground, live: LiveSessions) -> Outbox:
    settings = ground.settings

    def trajectory_of(session_id: str) -> Trajectory | None:
        try:
            found = live.find(session_id)
        except Erased:
            return None
        if found is None or found.state.erased:
            return None
        return ground.rewarding.recorded(found.state)

    log = ground.outside.trajectories or TrajectoryLog(
        settings.data_dir / "trajectories",
        rotate_bytes=settings.outbox.rotate_bytes,
        rotate_ms=settings.outbox.rotate_ms,
    )
    return Outbox(
        ground.store,
        ground.committer,
        trajectories=log,
        build=trajectory_of,
        clock=ground.clock,
    )


def _gate(settings: Settings, tokens: Tokens) -> Gate:
    return Gate(
        tokens,
        required=settings.auth_required,
        hosts=served_hosts(settings),
        origins=settings.http.allowed_origins,
    )
