"""The settings themselves: every figure the gateway runs with, its default and the reason for it.

Values are checked once, here, when they are built; what is left is immutable. Where they come from
(file, environment, flags) is the business of `gateway.config.load`. Protocol constants, which no
operator may change (nesting of JSON, size of a frame), stand in `acp_spec.model`, not here.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    model_validator,
)

from gateway.config.archive import ArchiveSettings, place_problem
from gateway.config.binds import Bind, parse_bind
from gateway.config.board import BoardSettings
from gateway.config.credentials import CredentialRef, parse_credential
from gateway.config.networks import LOOPBACK_NETWORKS, Network, parse_network
from gateway.config.records import RecordsSettings
from gateway.config.rewards import RewardSettings
from gateway.config.secrets import SecretsSettings
from gateway.config.section import Section
from gateway.config.semantics import SemanticsSettings
from gateway.config.web_addresses import sendable, web_address

KIB = 1024
MIB = 1024 * KIB

BindField = Annotated[Bind, BeforeValidator(parse_bind), PlainSerializer(str, return_type=str)]
NetworkField = Annotated[
    Network, BeforeValidator(parse_network), PlainSerializer(str, return_type=str)
]
CredentialField = Annotated[
    CredentialRef, BeforeValidator(parse_credential), PlainSerializer(str, return_type=str)
]
Count = Annotated[int, Field(ge=1)]
Milliseconds = Annotated[int, Field(ge=0)]
PositiveMilliseconds = Annotated[int, Field(ge=1)]


class AuthMode(StrEnum):
    """Whether callers must show a token."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


class LogLevel(StrEnum):
    """Least severe level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class HttpSettings(Section):
    """The HTTP side of the gateway."""

    bind: BindField = Field(
        default=Bind("127.0.0.1", 8080),
        description="Loopback, so that a first start exposes nothing.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Further values of the Host header that are served. Loopback names and the"
        " bind's own host always are; the check stops DNS rebinding, also with auth off.",
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description="Browser origins that may call. Empty: a foreign Origin is a 403."
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s]+)?$",
        description="Base URL under which components reach this gateway for call-backs. Empty: the"
        " address it is bound to.",
    )
    sse_keepalive_ms: PositiveMilliseconds = Field(
        default=15_000,
        description="Comment lines on idle event streams; proxies cut at 30 to 60 s.",
    )
    wait_max_ms: PositiveMilliseconds = Field(
        default=60_000, description="Upper bound of `Prefer: wait=N`; longer waits belong on SSE."
    )


class GrpcSettings(Section):
    """The gRPC side of the gateway."""

    bind: BindField = Field(
        default=Bind("127.0.0.1", 8081), description="Loopback, next to the HTTP port."
    )


class TlsSettings(Section):
    """Certificate for both binds; both or none."""

    cert_file: Path | None = Field(default=None, description="PEM chain. None: plain text.")
    key_file: Path | None = Field(default=None, description="PEM key of that certificate.")

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("set tls.cert_file and tls.key_file, or neither")
        return self


class AuthSettings(Section):
    """Who may call."""

    mode: AuthMode = Field(
        default=AuthMode.AUTO,
        description="auto: tokens are required unless every bind is loopback. off is refused"
        " on other binds.",
    )
    behind_tls_proxy: bool = Field(
        default=False,
        description="Says that a proxy ends TLS in front of a non-loopback bind. False, because"
        " tokens over plain text can be read by others.",
    )


class OutboundSettings(Section):
    """Which addresses the gateway dials, and with what."""

    allow: tuple[NetworkField, ...] | None = Field(
        default=None,
        description="Networks such as 10.0.0.0/8 that components may live in; every resolved"
        " address is checked. None: loopback if the gateway is bound to loopback, else nothing,"
        " so that nobody makes the gateway call its neighbours.",
    )
    connect_timeout_ms: PositiveMilliseconds = Field(
        default=1_000, description="A host that does not answer a SYN in 1 s is not there."
    )
    credentials: dict[str, CredentialField] = Field(
        default_factory=dict,
        description="Name -> env:NAME or file:PATH. A registration's `auth` names one of these.",
    )


class QueueLimits(Section):
    """One step type's queue (R07): calls that run at once, and calls that wait behind them."""

    concurrency: Count = Field(description="Calls of this step type in flight at once.")
    max_queued: Annotated[int, Field(ge=0)] = Field(
        description="Calls that may wait; the next one is refused OVERLOADED, at once."
    )
    priority: Annotated[int, Field(ge=-10, le=10)] = Field(
        default=0,
        description="Levels ahead at an instance that several step types share; a level is worth a"
        " second of waiting. 0: by the age of the session alone.",
    )


class QueueSettings(Section):
    """A queue per step type, so that a slow model server starves no tool."""

    plan: QueueLimits = Field(
        default=QueueLimits(concurrency=128, max_queued=4_096, priority=1),
        description="Planners answer in 10-1000 ms; one plan per session and loop.",
    )
    tool: QueueLimits = Field(
        default=QueueLimits(concurrency=512, max_queued=16_384),
        description="Most calls are tools, short and many; reflect and observe queue here too.",
    )
    llm: QueueLimits = Field(
        default=QueueLimits(concurrency=64, max_queued=2_048),
        description="Model servers batch tens of requests; more in flight only waits there.",
    )


class LimitSettings(Section):
    """Upper bounds; what goes over one is refused with its own reason, never cut silently."""

    max_response_bytes: Count = Field(
        default=4 * MIB,
        description="Answer of a component; protocol.md's default. Over it: 413 reason.",
    )
    max_request_bytes: Count = Field(
        default=4 * MIB,
        description="Body of a caller; the same, so that what came out can go in again.",
    )
    live_sessions: Count = Field(
        default=1_000,
        description="Sessions kept in memory (LRU); others are read back from disk. R07.",
    )
    max_open_sessions: Count = Field(
        default=20_000,
        description="Sessions not ended; the next open is OVERLOADED. 4 x R07's 5,000.",
    )
    target_concurrency: Count = Field(
        default=32,
        description="Calls in flight per instance whose card names no max_concurrency: enough"
        " for 600 sessions/s of 4 calls at 10 ms each, little enough for a thread pool.",
    )
    target_max_queued: Annotated[int, Field(ge=0)] = Field(
        default=1_024, description="Calls that wait for one instance before OVERLOADED."
    )
    queues: QueueSettings = Field(default=QueueSettings(), description="One queue per step type.")


class OverloadSettings(Section):
    """When new sessions are refused, because those let in before would wait too long (R09)."""

    queue_target_ms: Milliseconds = Field(
        default=100,
        description="A forecast of waiting over it, for an interval: new sessions are refused."
        " Beside calls of 10 to 1,000 ms nobody notices so much. 0: none is ever refused for it.",
    )
    queue_interval_ms: PositiveMilliseconds = Field(
        default=200, description="Shorter bursts are what a queue is for."
    )
    tenant_weights: dict[str, Annotated[float, Field(gt=0, le=1_000)]] = Field(
        default_factory=dict,
        description="Turns that a tenant has at a queue beside others; 1 where it is not named.",
    )


class GraceSettings(Section):
    """How long something is waited for before it counts as gone."""

    cancel_grace_ms: Milliseconds = Field(
        default=2_000, description="A cancelled call may still answer; then it is reset (UNKNOWN)."
    )
    pin_grace_ms: Milliseconds = Field(
        default=5_000,
        description="No pinned instance for so long: the active version, as a deviation.",
    )
    attach_grace_ms: Milliseconds = Field(
        default=15_000,
        description="After a start NO_COMPONENT waits so long: a heartbeat of every component.",
    )
    reattach_grace_ms: Milliseconds = Field(
        default=10_000,
        description="Calls of an attached component whose stream dropped stay open; two redials.",
    )
    drain_grace_ms: Milliseconds = Field(
        default=10_000,
        description="On SIGTERM calls in flight may end; below the usual 30 s of a host.",
    )


class RetrySettings(Section):
    """Defaults of the recovery policy `backoff` and of the retry budget."""

    session_budget: Annotated[int, Field(ge=0)] = Field(
        default=8, description="Retries a session may spend in all; protocol.md section 2."
    )
    backoff_base_ms: PositiveMilliseconds = Field(
        default=100,
        description="First wait is uniform in 0..100 ms (full jitter): one network hiccup.",
    )
    backoff_max_ms: PositiveMilliseconds = Field(
        default=5_000, description="No single wait is longer: a default call timeout."
    )

    hedge_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="Second attempts a call, at most, of calls that only read and are slow.",
    )
    hedge_after_ms: Milliseconds = Field(
        default=0, description="How slow; 0: slower than 95 of 100 calls of the action lately."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.backoff_base_ms > self.backoff_max_ms:
            raise ValueError("backoff_base_ms must not be over backoff_max_ms")
        return self


class GovernanceSettings(Section):
    """Where the live governance parameters begin, until somebody changes them at run time."""

    enabled: bool = Field(
        default=True,
        description="Circuit breakers and retry tokens. False is for tests that want to see every"
        " failure, and for measuring what they are good for.",
    )


class DeadlineSettings(Section):
    """Times that hold where a card, a workflow or a caller names none."""

    default_timeout_ms: PositiveMilliseconds = Field(
        default=5_000, description="One call; R06's figure for tools."
    )
    session_deadline_ms: PositiveMilliseconds = Field(
        default=30_000, description="One session; protocol.md section 8's example."
    )
    max_session_deadline_ms: PositiveMilliseconds = Field(
        default=86_400_000,
        description="What a caller may ask at most: a day. Operations stop the clock.",
    )


class JournalSettings(Section):
    """The journal's promise."""

    sync: bool = Field(
        default=True,
        description="fsync at sync points. False survives kill -9, not a power cut: for tests"
        " and benchmarks only.",
    )
    salvage: bool = Field(
        default=False,
        description="Start on a damaged journal with what stands before the damage; the rest is"
        " lost. False, because losing sessions must be somebody's decision.",
    )


class OutboxSettings(Section):
    """Trajectories written out as rotated JSON lines."""

    rotate_bytes: Count = Field(default=64 * MIB, description="A file that one editor still opens.")
    rotate_ms: PositiveMilliseconds = Field(
        default=3_600_000,
        description="At least one file an hour, so that readers see closed files.",
    )


class LeaseSettings(Section):
    """Leases of components and how they are kept."""

    default_lease_s: Count = Field(default=15, description="Where a registration names none.")
    attach_heartbeat_ms: PositiveMilliseconds = Field(
        default=5_000,
        description="Attached components beat so often; three beats missed, and the stream is cut.",
    )
    max_lease_s: Count = Field(
        default=86_400, description="Longer leases hide dead components; those probed need none."
    )
    probe_interval_ms: PositiveMilliseconds = Field(
        default=5_000, description="The gateway's own health question to registered addresses."
    )
    probe_timeout_ms: PositiveMilliseconds = Field(
        default=1_000, description="A health answer that takes longer tells of trouble itself."
    )


class LogSettings(Section):
    """Structured logs on standard error."""

    level: LogLevel = Field(
        default=LogLevel.INFO, description="Info is a few lines per minute, not call."
    )
    url_template: str = Field(
        default="",
        pattern=r"^(https?://\S*\{(session_id|lineage_id)\}\S*)?$",
        description="Where a reader of logs shows those of a session, with {session_id} or"
        " {lineage_id} in it; lineage pages link there. Empty: they name the filter to use.",
    )


class TracingSettings(Section):
    """Spans over OTLP."""

    enabled: bool = Field(default=False, description="Off: nobody listens by default.")
    endpoint: Annotated[str, AfterValidator(web_address)] = Field(
        default="http://127.0.0.1:4318/v1/traces",
        description="OTLP over HTTP; a collector's usual port.",
    )
    headers: Annotated[dict[str, SecretStr], AfterValidator(sendable)] = Field(
        default_factory=dict, description="Headers of the export, such as a token."
    )
    sample_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        default=0.01,
        description="Share of sessions without a caller's decision: 1% is enough to see.",
    )
    max_queued: Count = Field(
        default=8_192, description="Spans that wait for export; more are dropped and counted."
    )
    url_template: str = Field(
        default="",
        pattern=r"^(https?://\S*\{trace_id\}\S*)?$",
        description="Where your tracing shows a trace, with {trace_id} in it, such as"
        " https://jaeger.example/trace/{trace_id}; lineage pages link there.",
    )


class Settings(Section):
    """Everything `acp serve` runs with."""

    data_dir: Path = Field(default=Path(".data"), description="Journal, registry, outbox, tokens.")
    node_id: Annotated[int, Field(ge=0, le=0xFFFF)] = Field(
        default=0, description="16 bits inside each session id; one gateway needs no other number."
    )
    http: HttpSettings = HttpSettings()
    grpc: GrpcSettings = GrpcSettings()
    tls: TlsSettings = TlsSettings()
    auth: AuthSettings = AuthSettings()
    outbound: OutboundSettings = OutboundSettings()
    limits: LimitSettings = LimitSettings()
    overload: OverloadSettings = OverloadSettings()
    grace: GraceSettings = GraceSettings()
    retry: RetrySettings = RetrySettings()
    governance: GovernanceSettings = GovernanceSettings()
    deadlines: DeadlineSettings = DeadlineSettings()
    journal: JournalSettings = JournalSettings()
    outbox: OutboxSettings = OutboxSettings()
    leases: LeaseSettings = LeaseSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    board: BoardSettings = BoardSettings()
    semantics: SemanticsSettings = SemanticsSettings()
    rewards: RewardSettings = RewardSettings()
    records: RecordsSettings = RecordsSettings()
    secrets: SecretsSettings = SecretsSettings()
    archive: ArchiveSettings = ArchiveSettings()

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach the gateway."""
        return self.http.bind.is_loopback and self.grpc.bind.is_loopback

    @property
    def auth_required(self) -> bool:
        """True if callers must show a token."""
        if self.auth.mode is AuthMode.AUTO:
            return not self.is_loopback
        return self.auth.mode is AuthMode.REQUIRED

    @property
    def outbound_networks(self) -> tuple[Network, ...]:
        """The networks that may be dialled, after the default was applied."""
        if self.outbound.allow is not None:
            return self.outbound.allow
        return LOOPBACK_NETWORKS if self.is_loopback else ()

    @model_validator(mode="after")
    def _archive_apart(self) -> Self:
        if problem := place_problem(self.archive.url, self.data_dir):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _safe_to_expose(self) -> Self:
        if self.is_loopback:
            return self
        if self.auth.mode is AuthMode.OFF:
            raise ValueError(
                "auth.mode is off, but a bind is not loopback: bind to 127.0.0.1 or require tokens"
            )
        if self.tls.cert_file is None and not self.auth.behind_tls_proxy:
            raise ValueError(
                "a bind is not loopback and there is no TLS: set tls.cert_file and tls.key_file,"
                " or auth.behind_tls_proxy (--behind-tls-proxy) if a proxy ends TLS"
            )
        return self
