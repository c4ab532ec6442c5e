from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CODE_UNSPECIFIED: _ClassVar[Code]
    CODE_CANCELLED: _ClassVar[Code]
    CODE_UNKNOWN: _ClassVar[Code]
    CODE_INVALID_ARGUMENT: _ClassVar[Code]
    CODE_DEADLINE_EXCEEDED: _ClassVar[Code]
    CODE_NOT_FOUND: _ClassVar[Code]
    CODE_ALREADY_EXISTS: _ClassVar[Code]
    CODE_PERMISSION_DENIED: _ClassVar[Code]
    CODE_RESOURCE_EXHAUSTED: _ClassVar[Code]
    CODE_FAILED_PRECONDITION: _ClassVar[Code]
    CODE_ABORTED: _ClassVar[Code]
    CODE_OUT_OF_RANGE: _ClassVar[Code]
    CODE_UNIMPLEMENTED: _ClassVar[Code]
    CODE_INTERNAL: _ClassVar[Code]
    CODE_UNAVAILABLE: _ClassVar[Code]
    CODE_DATA_LOSS: _ClassVar[Code]
    CODE_UNAUTHENTICATED: _ClassVar[Code]

class SideEffect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIDE_EFFECT_UNSPECIFIED: _ClassVar[SideEffect]
    SIDE_EFFECT_NONE: _ClassVar[SideEffect]
    SIDE_EFFECT_PERFORMED: _ClassVar[SideEffect]
    SIDE_EFFECT_UNKNOWN: _ClassVar[SideEffect]

class Boundary(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOUNDARY_UNSPECIFIED: _ClassVar[Boundary]
    BOUNDARY_CLIENT: _ClassVar[Boundary]
    BOUNDARY_GATEWAY: _ClassVar[Boundary]
    BOUNDARY_ADAPTER: _ClassVar[Boundary]
    BOUNDARY_COMPONENT: _ClassVar[Boundary]
    BOUNDARY_DOWNSTREAM: _ClassVar[Boundary]

class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATOR_UNSPECIFIED: _ClassVar[Operator]
    OPERATOR_EQ: _ClassVar[Operator]
    OPERATOR_NE: _ClassVar[Operator]
    OPERATOR_LT: _ClassVar[Operator]
    OPERATOR_LE: _ClassVar[Operator]
    OPERATOR_GT: _ClassVar[Operator]
    OPERATOR_GE: _ClassVar[Operator]
    OPERATOR_EXISTS: _ClassVar[Operator]
    OPERATOR_IN: _ClassVar[Operator]

class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_UNSPECIFIED: _ClassVar[Effect]
    EFFECT_READ: _ClassVar[Effect]
    EFFECT_WRITE: _ClassVar[Effect]

class Idempotency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IDEMPOTENCY_UNSPECIFIED: _ClassVar[Idempotency]
    IDEMPOTENCY_NATURAL: _ClassVar[Idempotency]
    IDEMPOTENCY_BY_KEY: _ClassVar[Idempotency]
    IDEMPOTENCY_NONE: _ClassVar[Idempotency]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_PLANNER: _ClassVar[Role]
    ROLE_EXECUTOR: _ClassVar[Role]
    ROLE_OBSERVER: _ClassVar[Role]
    ROLE_REFLECTOR: _ClassVar[Role]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_TOOL: _ClassVar[Kind]
    KIND_LLM: _ClassVar[Kind]

class HealthStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_STATUS_UNSPECIFIED: _ClassVar[HealthStatus]
    HEALTH_STATUS_SERVING: _ClassVar[HealthStatus]
    HEALTH_STATUS_NOT_SERVING: _ClassVar[HealthStatus]

class StepStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_STATUS_UNSPECIFIED: _ClassVar[StepStatus]
    STEP_STATUS_PENDING: _ClassVar[StepStatus]
    STEP_STATUS_RUNNING: _ClassVar[StepStatus]
    STEP_STATUS_SUCCEEDED: _ClassVar[StepStatus]
    STEP_STATUS_FAILED: _ClassVar[StepStatus]
    STEP_STATUS_SKIPPED: _ClassVar[StepStatus]
    STEP_STATUS_CANCELLED: _ClassVar[StepStatus]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_ACCEPT: _ClassVar[Verdict]
    VERDICT_RETRY: _ClassVar[Verdict]
    VERDICT_REPLAN: _ClassVar[Verdict]
    VERDICT_FALLBACK: _ClassVar[Verdict]
    VERDICT_ABORT: _ClassVar[Verdict]

class CancelState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CANCEL_STATE_UNSPECIFIED: _ClassVar[CancelState]
    CANCEL_STATE_STOPPED: _ClassVar[CancelState]
    CANCEL_STATE_RUNNING: _ClassVar[CancelState]
    CANCEL_STATE_FINISHED: _ClassVar[CancelState]
    CANCEL_STATE_UNKNOWN_CALL: _ClassVar[CancelState]

class OperationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_STATUS_UNSPECIFIED: _ClassVar[OperationStatus]
    OPERATION_STATUS_RUNNING: _ClassVar[OperationStatus]
    OPERATION_STATUS_SUCCEEDED: _ClassVar[OperationStatus]
    OPERATION_STATUS_FAILED: _ClassVar[OperationStatus]
    OPERATION_STATUS_CANCELLED: _ClassVar[OperationStatus]

class Transport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSPORT_UNSPECIFIED: _ClassVar[Transport]
    TRANSPORT_HTTP: _ClassVar[Transport]
    TRANSPORT_GRPC: _ClassVar[Transport]
    TRANSPORT_ATTACH: _ClassVar[Transport]

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_AUTOMATIC: _ClassVar[Mode]
    MODE_MANUAL: _ClassVar[Mode]

class SessionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATUS_UNSPECIFIED: _ClassVar[SessionStatus]
    SESSION_STATUS_RUNNING: _ClassVar[SessionStatus]
    SESSION_STATUS_WAITING: _ClassVar[SessionStatus]
    SESSION_STATUS_SUCCEEDED: _ClassVar[SessionStatus]
    SESSION_STATUS_FAILED: _ClassVar[SessionStatus]
    SESSION_STATUS_CANCELLED: _ClassVar[SessionStatus]

class StepType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_TYPE_UNSPECIFIED: _ClassVar[StepType]
    STEP_TYPE_PLAN: _ClassVar[StepType]
    STEP_TYPE_TOOL: _ClassVar[StepType]
    STEP_TYPE_LLM: _ClassVar[StepType]

class FeedbackKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEEDBACK_KIND_UNSPECIFIED: _ClassVar[FeedbackKind]
    FEEDBACK_KIND_RATING: _ClassVar[FeedbackKind]
    FEEDBACK_KIND_COMMENT: _ClassVar[FeedbackKind]
    FEEDBACK_KIND_VALIDATION: _ClassVar[FeedbackKind]
    FEEDBACK_KIND_OUTCOME: _ClassVar[FeedbackKind]

class StepRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_ROLE_UNSPECIFIED: _ClassVar[StepRole]
    STEP_ROLE_PLAN: _ClassVar[StepRole]
    STEP_ROLE_EXECUTE: _ClassVar[StepRole]
    STEP_ROLE_OBSERVE: _ClassVar[StepRole]
    STEP_ROLE_REFLECT: _ClassVar[StepRole]
CODE_UNSPECIFIED: Code
CODE_CANCELLED: Code
CODE_UNKNOWN: Code
CODE_INVALID_ARGUMENT: Code
CODE_DEADLINE_EXCEEDED: Code
CODE_NOT_FOUND: Code
CODE_ALREADY_EXISTS: Code
CODE_PERMISSION_DENIED: Code
CODE_RESOURCE_EXHAUSTED: Code
CODE_FAILED_PRECONDITION: Code
CODE_ABORTED: Code
CODE_OUT_OF_RANGE: Code
CODE_UNIMPLEMENTED: Code
CODE_INTERNAL: Code
CODE_UNAVAILABLE: Code
CODE_DATA_LOSS: Code
CODE_UNAUTHENTICATED: Code
SIDE_EFFECT_UNSPECIFIED: SideEffect
SIDE_EFFECT_NONE: SideEffect
SIDE_EFFECT_PERFORMED: SideEffect
SIDE_EFFECT_UNKNOWN: SideEffect
BOUNDARY_UNSPECIFIED: Boundary
BOUNDARY_CLIENT: Boundary
BOUNDARY_GATEWAY: Boundary
BOUNDARY_ADAPTER: Boundary
BOUNDARY_COMPONENT: Boundary
BOUNDARY_DOWNSTREAM: Boundary
OPERATOR_UNSPECIFIED: Operator
OPERATOR_EQ: Operator
OPERATOR_NE: Operator
OPERATOR_LT: Operator
OPERATOR_LE: Operator
OPERATOR_GT: Operator
OPERATOR_GE: Operator
OPERATOR_EXISTS: Operator
OPERATOR_IN: Operator
EFFECT_UNSPECIFIED: Effect
EFFECT_READ: Effect
EFFECT_WRITE: Effect
IDEMPOTENCY_UNSPECIFIED: Idempotency
IDEMPOTENCY_NATURAL: Idempotency
IDEMPOTENCY_BY_KEY: Idempotency
IDEMPOTENCY_NONE: Idempotency
ROLE_UNSPECIFIED: Role
ROLE_PLANNER: Role
ROLE_EXECUTOR: Role
ROLE_OBSERVER: Role
ROLE_REFLECTOR: Role
KIND_UNSPECIFIED: Kind
KIND_TOOL: Kind
KIND_LLM: Kind
HEALTH_STATUS_UNSPECIFIED: HealthStatus
HEALTH_STATUS_SERVING: HealthStatus
HEALTH_STATUS_NOT_SERVING: HealthStatus
STEP_STATUS_UNSPECIFIED: StepStatus
STEP_STATUS_PENDING: StepStatus
STEP_STATUS_RUNNING: StepStatus
STEP_STATUS_SUCCEEDED: StepStatus
STEP_STATUS_FAILED: StepStatus
STEP_STATUS_SKIPPED: StepStatus
STEP_STATUS_CANCELLED: StepStatus
VERDICT_UNSPECIFIED: Verdict
VERDICT_ACCEPT: Verdict
VERDICT_RETRY: Verdict
VERDICT_REPLAN: Verdict
VERDICT_FALLBACK: Verdict
VERDICT_ABORT: Verdict
CANCEL_STATE_UNSPECIFIED: CancelState
CANCEL_STATE_STOPPED: CancelState
CANCEL_STATE_RUNNING: CancelState
CANCEL_STATE_FINISHED: CancelState
CANCEL_STATE_UNKNOWN_CALL: CancelState
OPERATION_STATUS_UNSPECIFIED: OperationStatus
OPERATION_STATUS_RUNNING: OperationStatus
OPERATION_STATUS_SUCCEEDED: OperationStatus
OPERATION_STATUS_FAILED: OperationStatus
OPERATION_STATUS_CANCELLED: OperationStatus
TRANSPORT_UNSPECIFIED: Transport
TRANSPORT_HTTP: Transport
TRANSPORT_GRPC: Transport
TRANSPORT_ATTACH: Transport
MODE_UNSPECIFIED: Mode
MODE_AUTOMATIC: Mode
MODE_MANUAL: Mode
SESSION_STATUS_UNSPECIFIED: SessionStatus
SESSION_STATUS_RUNNING: SessionStatus
SESSION_STATUS_WAITING: SessionStatus
SESSION_STATUS_SUCCEEDED: SessionStatus
SESSION_STATUS_FAILED: SessionStatus
SESSION_STATUS_CANCELLED: SessionStatus
STEP_TYPE_UNSPECIFIED: StepType
STEP_TYPE_PLAN: StepType
STEP_TYPE_TOOL: StepType
STEP_TYPE_LLM: StepType
FEEDBACK_KIND_UNSPECIFIED: FeedbackKind
FEEDBACK_KIND_RATING: FeedbackKind
FEEDBACK_KIND_COMMENT: FeedbackKind
FEEDBACK_KIND_VALIDATION: FeedbackKind
FEEDBACK_KIND_OUTCOME: FeedbackKind
STEP_ROLE_UNSPECIFIED: StepRole
STEP_ROLE_PLAN: StepRole
STEP_ROLE_EXECUTE: StepRole
STEP_ROLE_OBSERVE: StepRole
STEP_ROLE_REFLECT: StepRole

class Signals(_message.Message):
    __slots__ = ("component", "queue_length", "queue_ms", "service_ms", "cpu_percent", "gpu_queue_length", "inflight")
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_MS_FIELD_NUMBER: _ClassVar[int]
    CPU_PERCENT_FIELD_NUMBER: _ClassVar[int]
    GPU_QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    INFLIGHT_FIELD_NUMBER: _ClassVar[int]
    component: str
    queue_length: int
    queue_ms: float
    service_ms: float
    cpu_percent: float
    gpu_queue_length: int
    inflight: int
    def __init__(self, component: _Optional[str] = ..., queue_length: _Optional[int] = ..., queue_ms: _Optional[float] = ..., service_ms: _Optional[float] = ..., cpu_percent: _Optional[float] = ..., gpu_queue_length: _Optional[int] = ..., inflight: _Optional[int] = ...) -> None: ...

class Callback(_message.Message):
    __slots__ = ("url", "token")
    URL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    url: str
    token: str
    def __init__(self, url: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class Context(_message.Message):
    __slots__ = ("session_id", "lineage_id", "call_id", "attempt", "body_digest", "timeout_ms", "retry_budget", "traceparent", "tracestate", "baggage", "workflow", "step", "state_version", "priority", "tenant", "labels", "via", "callback", "signals")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BODY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    BAGGAGE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    lineage_id: str
    call_id: str
    attempt: int
    body_digest: str
    timeout_ms: int
    retry_budget: int
    traceparent: str
    tracestate: str
    baggage: str
    workflow: str
    step: str
    state_version: str
    priority: int
    tenant: str
    labels: _containers.ScalarMap[str, str]
    via: _containers.RepeatedScalarFieldContainer[str]
    callback: Callback
    signals: _containers.RepeatedCompositeFieldContainer[Signals]
    def __init__(self, session_id: _Optional[str] = ..., lineage_id: _Optional[str] = ..., call_id: _Optional[str] = ..., attempt: _Optional[int] = ..., body_digest: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., retry_budget: _Optional[int] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ..., baggage: _Optional[str] = ..., workflow: _Optional[str] = ..., step: _Optional[str] = ..., state_version: _Optional[str] = ..., priority: _Optional[int] = ..., tenant: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., via: _Optional[_Iterable[str]] = ..., callback: _Optional[_Union[Callback, _Mapping]] = ..., signals: _Optional[_Iterable[_Union[Signals, _Mapping]]] = ...) -> None: ...

class AcpError(_message.Message):
    __slots__ = ("code", "reason", "message", "retryable", "retry_after_ms", "side_effect", "boundary", "details", "details_truncated")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    code: Code
    reason: str
    message: str
    retryable: bool
    retry_after_ms: int
    side_effect: SideEffect
    boundary: Boundary
    details: bytes
    details_truncated: bool
    def __init__(self, code: _Optional[_Union[Code, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., retry_after_ms: _Optional[int] = ..., side_effect: _Optional[_Union[SideEffect, str]] = ..., boundary: _Optional[_Union[Boundary, str]] = ..., details: _Optional[bytes] = ..., details_truncated: _Optional[bool] = ...) -> None: ...

class Binding(_message.Message):
    __slots__ = ("to", "pointer")
    TO_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    to: str
    pointer: str
    def __init__(self, to: _Optional[str] = ..., pointer: _Optional[str] = ..., **kwargs) -> None: ...

class When(_message.Message):
    __slots__ = ("pointer", "op", "value")
    FROM_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    pointer: str
    op: Operator
    value: bytes
    def __init__(self, pointer: _Optional[str] = ..., op: _Optional[_Union[Operator, str]] = ..., value: _Optional[bytes] = ..., **kwargs) -> None: ...

class SubGoal(_message.Message):
    __slots__ = ("id", "action", "description", "arguments", "bindings", "depends_on", "when", "repeat")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_ON_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: str
    description: str
    arguments: bytes
    bindings: _containers.RepeatedCompositeFieldContainer[Binding]
    depends_on: _containers.RepeatedScalarFieldContainer[str]
    when: _containers.RepeatedCompositeFieldContainer[When]
    repeat: bool
    def __init__(self, id: _Optional[str] = ..., action: _Optional[str] = ..., description: _Optional[str] = ..., arguments: _Optional[bytes] = ..., bindings: _Optional[_Iterable[_Union[Binding, _Mapping]]] = ..., depends_on: _Optional[_Iterable[str]] = ..., when: _Optional[_Iterable[_Union[When, _Mapping]]] = ..., repeat: _Optional[bool] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("root_goal", "sub_goals")
    ROOT_GOAL_FIELD_NUMBER: _ClassVar[int]
    SUB_GOALS_FIELD_NUMBER: _ClassVar[int]
    root_goal: str
    sub_goals: _containers.RepeatedCompositeFieldContainer[SubGoal]
    def __init__(self, root_goal: _Optional[str] = ..., sub_goals: _Optional[_Iterable[_Union[SubGoal, _Mapping]]] = ...) -> None: ...

class Example(_message.Message):
    __slots__ = ("arguments", "output", "safe")
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SAFE_FIELD_NUMBER: _ClassVar[int]
    arguments: bytes
    output: bytes
    safe: bool
    def __init__(self, arguments: _Optional[bytes] = ..., output: _Optional[bytes] = ..., safe: _Optional[bool] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("name", "description", "input_schema", "output_schema", "effect", "idempotency", "idempotency_ttl_ms", "timeout_ms", "operation_timeout_ms", "semantics", "examples", "sandbox")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    input_schema: bytes
    output_schema: bytes
    effect: Effect
    idempotency: Idempotency
    idempotency_ttl_ms: int
    timeout_ms: int
    operation_timeout_ms: int
    semantics: bytes
    examples: _containers.RepeatedCompositeFieldContainer[Example]
    sandbox: Sandbox
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema: _Optional[bytes] = ..., output_schema: _Optional[bytes] = ..., effect: _Optional[_Union[Effect, str]] = ..., idempotency: _Optional[_Union[Idempotency, str]] = ..., idempotency_ttl_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., operation_timeout_ms: _Optional[int] = ..., semantics: _Optional[bytes] = ..., examples: _Optional[_Iterable[_Union[Example, _Mapping]]] = ..., sandbox: _Optional[_Union[Sandbox, _Mapping]] = ...) -> None: ...

class Sandbox(_message.Message):
    __slots__ = ("memory_bytes", "cpu_ms", "wall_ms", "processes", "guards")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    cpu_ms: int
    wall_ms: int
    processes: int
    guards: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, memory_bytes: _Optional[int] = ..., cpu_ms: _Optional[int] = ..., wall_ms: _Optional[int] = ..., processes: _Optional[int] = ..., guards: _Optional[_Iterable[str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_request_bytes", "max_concurrency", "max_rate_per_s")
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    MAX_RATE_PER_S_FIELD_NUMBER: _ClassVar[int]
    max_request_bytes: int
    max_concurrency: int
    max_rate_per_s: float
    def __init__(self, max_request_bytes: _Optional[int] = ..., max_concurrency: _Optional[int] = ..., max_rate_per_s: _Optional[float] = ...) -> None: ...

class Card(_message.Message):
    __slots__ = ("name", "version", "acp_versions", "roles", "actions", "limits", "docs_url", "kind")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACP_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DOCS_URL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    acp_versions: _containers.RepeatedScalarFieldContainer[str]
    roles: _containers.RepeatedScalarFieldContainer[Role]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    limits: Limits
    docs_url: str
    kind: Kind
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., acp_versions: _Optional[_Iterable[str]] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., docs_url: _Optional[str] = ..., kind: _Optional[_Union[Kind, str]] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("status", "signals")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    status: HealthStatus
    signals: Signals
    def __init__(self, status: _Optional[_Union[HealthStatus, str]] = ..., signals: _Optional[_Union[Signals, _Mapping]] = ...) -> None: ...

class ComponentRef(_message.Message):
    __slots__ = ("version", "digest")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    version: str
    digest: str
    def __init__(self, version: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("tokens", "cost_micros")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROS_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    cost_micros: int
    def __init__(self, tokens: _Optional[int] = ..., cost_micros: _Optional[int] = ...) -> None: ...

class LlmCall(_message.Message):
    __slots__ = ("id", "model", "prompt", "response", "prompt_token_ids", "response_token_ids", "logprobs", "tokens", "latency_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    model: str
    prompt: bytes
    response: bytes
    prompt_token_ids: _containers.RepeatedScalarFieldContainer[int]
    response_token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    tokens: int
    latency_ms: float
    def __init__(self, id: _Optional[str] = ..., model: _Optional[str] = ..., prompt: _Optional[bytes] = ..., response: _Optional[bytes] = ..., prompt_token_ids: _Optional[_Iterable[int]] = ..., response_token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[float]] = ..., tokens: _Optional[int] = ..., latency_ms: _Optional[float] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("id", "data", "score", "source")
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    data: bytes
    score: float
    source: str
    def __init__(self, id: _Optional[str] = ..., data: _Optional[bytes] = ..., score: _Optional[float] = ..., source: _Optional[str] = ...) -> None: ...

class SettledCall(_message.Message):
    __slots__ = ("call_id", "step", "sub_goal", "action", "status", "arguments", "output", "error", "side_effect", "attempt", "truncated")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SUB_GOAL_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    step: str
    sub_goal: str
    action: str
    status: StepStatus
    arguments: bytes
    output: bytes
    error: AcpError
    side_effect: SideEffect
    attempt: int
    truncated: bool
    def __init__(self, call_id: _Optional[str] = ..., step: _Optional[str] = ..., sub_goal: _Optional[str] = ..., action: _Optional[str] = ..., status: _Optional[_Union[StepStatus, str]] = ..., arguments: _Optional[bytes] = ..., output: _Optional[bytes] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ..., side_effect: _Optional[_Union[SideEffect, str]] = ..., attempt: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class PlanLimits(_message.Message):
    __slots__ = ("max_sub_goals",)
    MAX_SUB_GOALS_FIELD_NUMBER: _ClassVar[int]
    max_sub_goals: int
    def __init__(self, max_sub_goals: _Optional[int] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("context", "goal", "input", "actions", "memory", "calls", "previous_plan", "critique", "limits")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PLAN_FIELD_NUMBER: _ClassVar[int]
    CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    context: Context
    goal: str
    input: bytes
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    memory: _containers.RepeatedCompositeFieldContainer[Memory]
    calls: _containers.RepeatedCompositeFieldContainer[SettledCall]
    previous_plan: Plan
    critique: str
    limits: PlanLimits
    def __init__(self, context: _Optional[_Union[Context, _Mapping]] = ..., goal: _Optional[str] = ..., input: _Optional[bytes] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., memory: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., calls: _Optional[_Iterable[_Union[SettledCall, _Mapping]]] = ..., previous_plan: _Optional[_Union[Plan, _Mapping]] = ..., critique: _Optional[str] = ..., limits: _Optional[_Union[PlanLimits, _Mapping]] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("plan", "output", "confidence", "rationale", "component", "retries_spent", "usage", "llm_calls")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    output: bytes
    confidence: float
    rationale: str
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., output: _Optional[bytes] = ..., confidence: _Optional[float] = ..., rationale: _Optional[str] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("context", "action", "arguments")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    context: Context
    action: str
    arguments: bytes
    def __init__(self, context: _Optional[_Union[Context, _Mapping]] = ..., action: _Optional[str] = ..., arguments: _Optional[bytes] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("poll_after_ms",)
    POLL_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    poll_after_ms: int
    def __init__(self, poll_after_ms: _Optional[int] = ...) -> None: ...

class ExecuteResponse(_message.Message):
    __slots__ = ("output", "side_effect", "operation", "component", "retries_spent", "usage", "llm_calls")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    output: bytes
    side_effect: SideEffect
    operation: Operation
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, output: _Optional[bytes] = ..., side_effect: _Optional[_Union[SideEffect, str]] = ..., operation: _Optional[_Union[Operation, _Mapping]] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("progress", "message")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    progress: bytes
    message: str
    def __init__(self, progress: _Optional[bytes] = ..., message: _Optional[str] = ...) -> None: ...

class ExecuteStreamItem(_message.Message):
    __slots__ = ("progress", "response")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    response: ExecuteResponse
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., response: _Optional[_Union[ExecuteResponse, _Mapping]] = ...) -> None: ...

class Observation(_message.Message):
    __slots__ = ("step", "call_id", "kind", "data", "time")
    STEP_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    step: str
    call_id: str
    kind: str
    data: bytes
    time: str
    def __init__(self, step: _Optional[str] = ..., call_id: _Optional[str] = ..., kind: _Optional[str] = ..., data: _Optional[bytes] = ..., time: _Optional[str] = ...) -> None: ...

class Recall(_message.Message):
    __slots__ = ("query", "limit")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    query: str
    limit: int
    def __init__(self, query: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ObserveRequest(_message.Message):
    __slots__ = ("context", "observations", "recall")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    context: Context
    observations: _containers.RepeatedCompositeFieldContainer[Observation]
    recall: Recall
    def __init__(self, context: _Optional[_Union[Context, _Mapping]] = ..., observations: _Optional[_Iterable[_Union[Observation, _Mapping]]] = ..., recall: _Optional[_Union[Recall, _Mapping]] = ...) -> None: ...

class ObserveResponse(_message.Message):
    __slots__ = ("stored", "memory", "component", "retries_spent", "usage", "llm_calls")
    STORED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    stored: int
    memory: _containers.RepeatedCompositeFieldContainer[Memory]
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, stored: _Optional[int] = ..., memory: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class Reward(_message.Message):
    __slots__ = ("name", "value", "call_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    call_id: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., call_id: _Optional[str] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("text", "value", "unit", "derivation", "sources")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    DERIVATION_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    text: str
    value: bytes
    unit: str
    derivation: str
    sources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., value: _Optional[bytes] = ..., unit: _Optional[str] = ..., derivation: _Optional[str] = ..., sources: _Optional[_Iterable[str]] = ...) -> None: ...

class ReflectRequest(_message.Message):
    __slots__ = ("context", "goal", "plan", "calls", "draft")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    context: Context
    goal: str
    plan: Plan
    calls: _containers.RepeatedCompositeFieldContainer[SettledCall]
    draft: bytes
    def __init__(self, context: _Optional[_Union[Context, _Mapping]] = ..., goal: _Optional[str] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., calls: _Optional[_Iterable[_Union[SettledCall, _Mapping]]] = ..., draft: _Optional[bytes] = ...) -> None: ...

class ReflectResponse(_message.Message):
    __slots__ = ("verdict", "critique", "retry_call_ids", "rewards", "output", "claims", "component", "retries_spent", "usage", "llm_calls")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CRITIQUE_FIELD_NUMBER: _ClassVar[int]
    RETRY_CALL_IDS_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    verdict: Verdict
    critique: str
    retry_call_ids: _containers.RepeatedScalarFieldContainer[str]
    rewards: _containers.RepeatedCompositeFieldContainer[Reward]
    output: bytes
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, verdict: _Optional[_Union[Verdict, str]] = ..., critique: _Optional[str] = ..., retry_call_ids: _Optional[_Iterable[str]] = ..., rewards: _Optional[_Iterable[_Union[Reward, _Mapping]]] = ..., output: _Optional[bytes] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("call_id", "attempt")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    attempt: int
    def __init__(self, call_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("state", "side_effect")
    STATE_FIELD_NUMBER: _ClassVar[int]
    SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    state: CancelState
    side_effect: SideEffect
    def __init__(self, state: _Optional[_Union[CancelState, str]] = ..., side_effect: _Optional[_Union[SideEffect, str]] = ...) -> None: ...

class OperationRequest(_message.Message):
    __slots__ = ("call_id",)
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    def __init__(self, call_id: _Optional[str] = ...) -> None: ...

class OperationState(_message.Message):
    __slots__ = ("status", "poll_after_ms", "output", "side_effect", "error", "component", "retries_spent", "usage", "llm_calls")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    POLL_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SIDE_EFFECT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    status: OperationStatus
    poll_after_ms: int
    output: bytes
    side_effect: SideEffect
    error: AcpError
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, status: _Optional[_Union[OperationStatus, str]] = ..., poll_after_ms: _Optional[int] = ..., output: _Optional[bytes] = ..., side_effect: _Optional[_Union[SideEffect, str]] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class ErrorBody(_message.Message):
    __slots__ = ("error", "component", "retries_spent", "usage", "llm_calls")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_SPENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LLM_CALLS_FIELD_NUMBER: _ClassVar[int]
    error: AcpError
    component: ComponentRef
    retries_spent: int
    usage: Usage
    llm_calls: _containers.RepeatedCompositeFieldContainer[LlmCall]
    def __init__(self, error: _Optional[_Union[AcpError, _Mapping]] = ..., component: _Optional[_Union[ComponentRef, _Mapping]] = ..., retries_spent: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., llm_calls: _Optional[_Iterable[_Union[LlmCall, _Mapping]]] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("url", "transport", "lease_seconds", "labels", "auth")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    URL_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    url: str
    transport: Transport
    lease_seconds: int
    labels: _containers.ScalarMap[str, str]
    auth: str
    def __init__(self, url: _Optional[str] = ..., transport: _Optional[_Union[Transport, str]] = ..., lease_seconds: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., auth: _Optional[str] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("lease_seconds", "expires_at")
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    lease_seconds: int
    expires_at: str
    def __init__(self, lease_seconds: _Optional[int] = ..., expires_at: _Optional[str] = ...) -> None: ...

class RegisteredComponent(_message.Message):
    __slots__ = ("component_id", "card", "lease", "url", "transport", "digest", "labels", "state", "signals")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMPONENT_ID_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    component_id: str
    card: Card
    lease: Lease
    url: str
    transport: Transport
    digest: str
    labels: _containers.ScalarMap[str, str]
    state: str
    signals: Signals
    def __init__(self, component_id: _Optional[str] = ..., card: _Optional[_Union[Card, _Mapping]] = ..., lease: _Optional[_Union[Lease, _Mapping]] = ..., url: _Optional[str] = ..., transport: _Optional[_Union[Transport, str]] = ..., digest: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., state: _Optional[str] = ..., signals: _Optional[_Union[Signals, _Mapping]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("signals",)
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    signals: Signals
    def __init__(self, signals: _Optional[_Union[Signals, _Mapping]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("line", "column", "path", "message")
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    line: int
    column: int
    path: str
    message: str
    def __init__(self, line: _Optional[int] = ..., column: _Optional[int] = ..., path: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Validation(_message.Message):
    __slots__ = ("valid", "problems")
    VALID_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, valid: _Optional[bool] = ..., problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class OpenSession(_message.Message):
    __slots__ = ("workflow", "input", "deadline_ms", "priority", "labels", "session_key", "mode")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SESSION_KEY_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    workflow: str
    input: bytes
    deadline_ms: int
    priority: int
    labels: _containers.ScalarMap[str, str]
    session_key: str
    mode: Mode
    def __init__(self, workflow: _Optional[str] = ..., input: _Optional[bytes] = ..., deadline_ms: _Optional[int] = ..., priority: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., session_key: _Optional[str] = ..., mode: _Optional[_Union[Mode, str]] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("session_id", "lineage_id", "state_version", "status")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    lineage_id: str
    state_version: str
    status: SessionStatus
    def __init__(self, session_id: _Optional[str] = ..., lineage_id: _Optional[str] = ..., state_version: _Optional[str] = ..., status: _Optional[_Union[SessionStatus, str]] = ...) -> None: ...

class StepView(_message.Message):
    __slots__ = ("name", "status")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    name: str
    status: StepStatus
    def __init__(self, name: _Optional[str] = ..., status: _Optional[_Union[StepStatus, str]] = ...) -> None: ...

class Deviation(_message.Message):
    __slots__ = ("step", "role", "intended", "served", "reason")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INTENDED_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    step: str
    role: str
    intended: str
    served: str
    reason: str
    def __init__(self, step: _Optional[str] = ..., role: _Optional[str] = ..., intended: _Optional[str] = ..., served: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Times(_message.Message):
    __slots__ = ("opened_at", "deadline_at", "ended_at")
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    opened_at: str
    deadline_at: str
    ended_at: str
    def __init__(self, opened_at: _Optional[str] = ..., deadline_at: _Optional[str] = ..., ended_at: _Optional[str] = ...) -> None: ...

class SessionView(_message.Message):
    __slots__ = ("session_id", "lineage_id", "workflow", "status", "state_version", "fell_back", "output", "error", "steps", "deviations", "mode", "labels", "times", "erased_at")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    FELL_BACK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DEVIATIONS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    ERASED_AT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    lineage_id: str
    workflow: str
    status: SessionStatus
    state_version: str
    fell_back: bool
    output: bytes
    error: AcpError
    steps: _containers.RepeatedCompositeFieldContainer[StepView]
    deviations: _containers.RepeatedCompositeFieldContainer[Deviation]
    mode: Mode
    labels: _containers.ScalarMap[str, str]
    times: Times
    erased_at: str
    def __init__(self, session_id: _Optional[str] = ..., lineage_id: _Optional[str] = ..., workflow: _Optional[str] = ..., status: _Optional[_Union[SessionStatus, str]] = ..., state_version: _Optional[str] = ..., fell_back: _Optional[bool] = ..., output: _Optional[bytes] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[StepView, _Mapping]]] = ..., deviations: _Optional[_Iterable[_Union[Deviation, _Mapping]]] = ..., mode: _Optional[_Union[Mode, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., times: _Optional[_Union[Times, _Mapping]] = ..., erased_at: _Optional[str] = ...) -> None: ...

class SessionPage(_message.Message):
    __slots__ = ("sessions", "next")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[SessionView]
    next: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[SessionView, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ManualStep(_message.Message):
    __slots__ = ("step_type", "payload", "step_key", "component")
    STEP_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    STEP_KEY_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    step_type: StepType
    payload: bytes
    step_key: str
    component: str
    def __init__(self, step_type: _Optional[_Union[StepType, str]] = ..., payload: _Optional[bytes] = ..., step_key: _Optional[str] = ..., component: _Optional[str] = ...) -> None: ...

class StepResult(_message.Message):
    __slots__ = ("step_key", "call_id", "status", "state_version", "response", "error")
    STEP_KEY_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    step_key: str
    call_id: str
    status: StepStatus
    state_version: str
    response: bytes
    error: AcpError
    def __init__(self, step_key: _Optional[str] = ..., call_id: _Optional[str] = ..., status: _Optional[_Union[StepStatus, str]] = ..., state_version: _Optional[str] = ..., response: _Optional[bytes] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ...) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ("output",)
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    output: bytes
    def __init__(self, output: _Optional[bytes] = ...) -> None: ...

class FeedbackTarget(_message.Message):
    __slots__ = ("call_id", "step", "loop")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOOP_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    step: str
    loop: int
    def __init__(self, call_id: _Optional[str] = ..., step: _Optional[str] = ..., loop: _Optional[int] = ...) -> None: ...

class Feedback(_message.Message):
    __slots__ = ("kind", "score", "comment", "target", "author", "time", "feedback_id", "sampling_probability")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    kind: FeedbackKind
    score: float
    comment: str
    target: FeedbackTarget
    author: str
    time: str
    feedback_id: str
    sampling_probability: float
    def __init__(self, kind: _Optional[_Union[FeedbackKind, str]] = ..., score: _Optional[float] = ..., comment: _Optional[str] = ..., target: _Optional[_Union[FeedbackTarget, _Mapping]] = ..., author: _Optional[str] = ..., time: _Optional[str] = ..., feedback_id: _Optional[str] = ..., sampling_probability: _Optional[float] = ...) -> None: ...

class FeedbackAccepted(_message.Message):
    __slots__ = ("feedback_id", "state_version")
    FEEDBACK_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    feedback_id: str
    state_version: str
    def __init__(self, feedback_id: _Optional[str] = ..., state_version: _Optional[str] = ...) -> None: ...

class CompleteOperation(_message.Message):
    __slots__ = ("output", "error")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    output: bytes
    error: AcpError
    def __init__(self, output: _Optional[bytes] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ...) -> None: ...

class ComponentPage(_message.Message):
    __slots__ = ("components",)
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    components: _containers.RepeatedCompositeFieldContainer[RegisteredComponent]
    def __init__(self, components: _Optional[_Iterable[_Union[RegisteredComponent, _Mapping]]] = ...) -> None: ...

class WorkflowVersion(_message.Message):
    __slots__ = ("name", "version", "active", "sha256", "stored_at", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    STORED_AT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    active: bool
    sha256: str
    stored_at: str
    source: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., active: _Optional[bool] = ..., sha256: _Optional[str] = ..., stored_at: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class WorkflowPage(_message.Message):
    __slots__ = ("workflows",)
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[WorkflowVersion]
    def __init__(self, workflows: _Optional[_Iterable[_Union[WorkflowVersion, _Mapping]]] = ...) -> None: ...

class SessionEvent(_message.Message):
    __slots__ = ("id", "type", "time", "data")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    id: int
    type: str
    time: str
    data: bytes
    def __init__(self, id: _Optional[int] = ..., type: _Optional[str] = ..., time: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ComponentIdRequest(_message.Message):
    __slots__ = ("component_id",)
    COMPONENT_ID_FIELD_NUMBER: _ClassVar[int]
    component_id: str
    def __init__(self, component_id: _Optional[str] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("component_id", "signals")
    COMPONENT_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    component_id: str
    signals: Signals
    def __init__(self, component_id: _Optional[str] = ..., signals: _Optional[_Union[Signals, _Mapping]] = ...) -> None: ...

class WorkflowRequest(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PutWorkflowRequest(_message.Message):
    __slots__ = ("name", "version", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class ValidateWorkflowRequest(_message.Message):
    __slots__ = ("source",)
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: str
    def __init__(self, source: _Optional[str] = ...) -> None: ...

class OpenSessionRequest(_message.Message):
    __slots__ = ("session", "wait_s")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    session: OpenSession
    wait_s: int
    def __init__(self, session: _Optional[_Union[OpenSession, _Mapping]] = ..., wait_s: _Optional[int] = ...) -> None: ...

class OpenSessionResponse(_message.Message):
    __slots__ = ("opened", "session")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    session: SessionView
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., session: _Optional[_Union[SessionView, _Mapping]] = ...) -> None: ...

class SessionIdRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id", "min_version")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    min_version: str
    def __init__(self, session_id: _Optional[str] = ..., min_version: _Optional[str] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("status", "workflow", "after", "limit")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    status: str
    workflow: str
    after: str
    limit: int
    def __init__(self, status: _Optional[str] = ..., workflow: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class StreamEventsRequest(_message.Message):
    __slots__ = ("session_id", "last_event_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    last_event_id: int
    def __init__(self, session_id: _Optional[str] = ..., last_event_id: _Optional[int] = ...) -> None: ...

class ExecuteStepRequest(_message.Message):
    __slots__ = ("session_id", "step", "wait_s")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    step: ManualStep
    wait_s: int
    def __init__(self, session_id: _Optional[str] = ..., step: _Optional[_Union[ManualStep, _Mapping]] = ..., wait_s: _Optional[int] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("session_id", "step_key")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_KEY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    step_key: str
    def __init__(self, session_id: _Optional[str] = ..., step_key: _Optional[str] = ...) -> None: ...

class FinishSessionRequest(_message.Message):
    __slots__ = ("session_id", "output")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    output: bytes
    def __init__(self, session_id: _Optional[str] = ..., output: _Optional[bytes] = ...) -> None: ...

class GiveFeedbackRequest(_message.Message):
    __slots__ = ("session_id", "feedback")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    feedback: Feedback
    def __init__(self, session_id: _Optional[str] = ..., feedback: _Optional[_Union[Feedback, _Mapping]] = ...) -> None: ...

class LineageRequest(_message.Message):
    __slots__ = ("lineage_id",)
    LINEAGE_ID_FIELD_NUMBER: _ClassVar[int]
    lineage_id: str
    def __init__(self, lineage_id: _Optional[str] = ...) -> None: ...

class CompleteOperationRequest(_message.Message):
    __slots__ = ("call_id", "token", "result")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    token: str
    result: CompleteOperation
    def __init__(self, call_id: _Optional[str] = ..., token: _Optional[str] = ..., result: _Optional[_Union[CompleteOperation, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("instance_id", "incarnation", "card", "in_flight", "finished_unacked", "acp_version")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_UNACKED_FIELD_NUMBER: _ClassVar[int]
    ACP_VERSION_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    incarnation: int
    card: Card
    in_flight: _containers.RepeatedCompositeFieldContainer[AttemptKey]
    finished_unacked: _containers.RepeatedCompositeFieldContainer[AttemptKey]
    acp_version: str
    def __init__(self, instance_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., card: _Optional[_Union[Card, _Mapping]] = ..., in_flight: _Optional[_Iterable[_Union[AttemptKey, _Mapping]]] = ..., finished_unacked: _Optional[_Iterable[_Union[AttemptKey, _Mapping]]] = ..., acp_version: _Optional[str] = ...) -> None: ...

class AttemptKey(_message.Message):
    __slots__ = ("call_id", "attempt")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    attempt: int
    def __init__(self, call_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("component_id", "acp_version", "reattach_grace_ms", "heartbeat_ms", "max_frame_bytes", "attachment_id")
    COMPONENT_ID_FIELD_NUMBER: _ClassVar[int]
    ACP_VERSION_FIELD_NUMBER: _ClassVar[int]
    REATTACH_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    ATTACHMENT_ID_FIELD_NUMBER: _ClassVar[int]
    component_id: str
    acp_version: str
    reattach_grace_ms: int
    heartbeat_ms: int
    max_frame_bytes: int
    attachment_id: str
    def __init__(self, component_id: _Optional[str] = ..., acp_version: _Optional[str] = ..., reattach_grace_ms: _Optional[int] = ..., heartbeat_ms: _Optional[int] = ..., max_frame_bytes: _Optional[int] = ..., attachment_id: _Optional[str] = ...) -> None: ...

class AttachHeartbeat(_message.Message):
    __slots__ = ("signals",)
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    signals: Signals
    def __init__(self, signals: _Optional[_Union[Signals, _Mapping]] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("grace_ms",)
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class CancelOutcome(_message.Message):
    __slots__ = ("key", "response")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    key: AttemptKey
    response: CancelResponse
    def __init__(self, key: _Optional[_Union[AttemptKey, _Mapping]] = ..., response: _Optional[_Union[CancelResponse, _Mapping]] = ...) -> None: ...

class OperationOutcome(_message.Message):
    __slots__ = ("call_id", "state", "cancelled", "error")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    state: OperationState
    cancelled: CancelResponse
    error: AcpError
    def __init__(self, call_id: _Optional[str] = ..., state: _Optional[_Union[OperationState, _Mapping]] = ..., cancelled: _Optional[_Union[CancelResponse, _Mapping]] = ..., error: _Optional[_Union[AcpError, _Mapping]] = ...) -> None: ...

class ComponentControlFrame(_message.Message):
    __slots__ = ("hello", "heartbeat", "cancelled", "drain", "operation")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    heartbeat: AttachHeartbeat
    cancelled: CancelOutcome
    drain: Drain
    operation: OperationOutcome
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., heartbeat: _Optional[_Union[AttachHeartbeat, _Mapping]] = ..., cancelled: _Optional[_Union[CancelOutcome, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., operation: _Optional[_Union[OperationOutcome, _Mapping]] = ...) -> None: ...

class GatewayControlFrame(_message.Message):
    __slots__ = ("welcome", "cancel", "drain", "heartbeat", "get_operation", "cancel_operation")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    GET_OPERATION_FIELD_NUMBER: _ClassVar[int]
    CANCEL_OPERATION_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    cancel: CancelRequest
    drain: Drain
    heartbeat: AttachHeartbeat
    get_operation: OperationRequest
    cancel_operation: OperationRequest
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., cancel: _Optional[_Union[CancelRequest, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., heartbeat: _Optional[_Union[AttachHeartbeat, _Mapping]] = ..., get_operation: _Optional[_Union[OperationRequest, _Mapping]] = ..., cancel_operation: _Optional[_Union[OperationRequest, _Mapping]] = ...) -> None: ...

class ComponentControl(_message.Message):
    __slots__ = ("frames",)
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    frames: _containers.RepeatedCompositeFieldContainer[ComponentControlFrame]
    def __init__(self, frames: _Optional[_Iterable[_Union[ComponentControlFrame, _Mapping]]] = ...) -> None: ...

class GatewayControl(_message.Message):
    __slots__ = ("frames",)
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    frames: _containers.RepeatedCompositeFieldContainer[GatewayControlFrame]
    def __init__(self, frames: _Optional[_Iterable[_Union[GatewayControlFrame, _Mapping]]] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("key", "index", "last", "data")
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    key: AttemptKey
    index: int
    last: bool
    data: bytes
    def __init__(self, key: _Optional[_Union[AttemptKey, _Mapping]] = ..., index: _Optional[int] = ..., last: _Optional[bool] = ..., data: _Optional[bytes] = ...) -> None: ...

class CallFrame(_message.Message):
    __slots__ = ("key", "role", "plan", "execute", "observe", "reflect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_FIELD_NUMBER: _ClassVar[int]
    OBSERVE_FIELD_NUMBER: _ClassVar[int]
    REFLECT_FIELD_NUMBER: _ClassVar[int]
    key: AttemptKey
    role: StepRole
    plan: PlanRequest
    execute: ExecuteRequest
    observe: ObserveRequest
    reflect: ReflectRequest
    def __init__(self, key: _Optional[_Union[AttemptKey, _Mapping]] = ..., role: _Optional[_Union[StepRole, str]] = ..., plan: _Optional[_Union[PlanRequest, _Mapping]] = ..., execute: _Optional[_Union[ExecuteRequest, _Mapping]] = ..., observe: _Optional[_Union[ObserveRequest, _Mapping]] = ..., reflect: _Optional[_Union[ReflectRequest, _Mapping]] = ...) -> None: ...

class AnswerFrame(_message.Message):
    __slots__ = ("key", "plan", "execute", "observe", "reflect", "error", "progress")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_FIELD_NUMBER: _ClassVar[int]
    OBSERVE_FIELD_NUMBER: _ClassVar[int]
    REFLECT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    key: AttemptKey
    plan: PlanResponse
    execute: ExecuteResponse
    observe: ObserveResponse
    reflect: ReflectResponse
    error: ErrorBody
    progress: Progress
    def __init__(self, key: _Optional[_Union[AttemptKey, _Mapping]] = ..., plan: _Optional[_Union[PlanResponse, _Mapping]] = ..., execute: _Optional[_Union[ExecuteResponse, _Mapping]] = ..., observe: _Optional[_Union[ObserveResponse, _Mapping]] = ..., reflect: _Optional[_Union[ReflectResponse, _Mapping]] = ..., error: _Optional[_Union[ErrorBody, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ...) -> None: ...

class Credits(_message.Message):
    __slots__ = ("granted",)
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    granted: int
    def __init__(self, granted: _Optional[int] = ...) -> None: ...

class Acknowledged(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: AttemptKey
    def __init__(self, key: _Optional[_Union[AttemptKey, _Mapping]] = ...) -> None: ...

class ComponentCallsFrame(_message.Message):
    __slots__ = ("credits", "answer", "chunk")
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    credits: Credits
    answer: AnswerFrame
    chunk: Chunk
    def __init__(self, credits: _Optional[_Union[Credits, _Mapping]] = ..., answer: _Optional[_Union[AnswerFrame, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ...) -> None: ...

class GatewayCallsFrame(_message.Message):
    __slots__ = ("call", "acknowledged", "chunk")
    CALL_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    call: CallFrame
    acknowledged: Acknowledged
    chunk: Chunk
    def __init__(self, call: _Optional[_Union[CallFrame, _Mapping]] = ..., acknowledged: _Optional[_Union[Acknowledged, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ...) -> None: ...

class ComponentCalls(_message.Message):
    __slots__ = ("attachment_id", "frames")
    ATTACHMENT_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    attachment_id: str
    frames: _containers.RepeatedCompositeFieldContainer[ComponentCallsFrame]
    def __init__(self, attachment_id: _Optional[str] = ..., frames: _Optional[_Iterable[_Union[ComponentCallsFrame, _Mapping]]] = ...) -> None: ...

class GatewayCalls(_message.Message):
    __slots__ = ("frames",)
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    frames: _containers.RepeatedCompositeFieldContainer[GatewayCallsFrame]
    def __init__(self, frames: _Optional[_Iterable[_Union[GatewayCallsFrame, _Mapping]]] = ...) -> None: ...
