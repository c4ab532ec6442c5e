"""A component in ten lines: name it, decorate functions, run.

    component = Component("rates", "1.0.0")

    @component.action("rates.convert", effect=Effect.READ, idempotency=Idempotency.NATURAL)
    def convert(arguments, call):
        return {"amount": arguments["amount"] * RATES[arguments["to"]]}

    component.run()

Functions may be sync (run in a thread) or async. This module collects declarations and makes the
card; `dispatch` enforces the protocol and `serving` opens the ports.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import msgspec

from acp_spec.model.card import IDEMPOTENCY_TTL_MS_DEFAULT, Action, Card, Example, Limits
from acp_spec.model.enums import Effect, Idempotency, Kind, Role, StepRole
from acp_spec.model.payload import ABSENT
from acp_spec.model.sandbox import Sandbox
from acp_spec.sdk.outcomes import MemoryOutcomes, OutcomeStore
from acp_spec.sdk.validation import Validator, compile_schema
from acp_spec.sdk.values import write

if TYPE_CHECKING:
    from acp_spec.sdk.serving import Server

Handler = Callable[..., object]
H = TypeVar("H", bound=Handler)

MAX_REQUEST_BYTES_DEFAULT = 4 * 1024 * 1024
"""As much as a gateway accepts in an answer by default, so whatever one step says the next can
hear.
"""


class ActionOptions(TypedDict, total=False):
    """What `@component.action` may state; absent reads as the careful choice (WRITE, NONE)."""

    description: str
    effect: Effect
    idempotency: Idempotency
    idempotency_ttl_ms: int
    input_schema: object
    output_schema: object
    examples: Sequence[Mapping[str, object]]
    semantics: object
    timeout_ms: int
    operation_timeout_ms: int
    own_idempotency: bool
    sandbox: Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing that can be called: the function and what the protocol must know about it.

    `remembers`: the SDK keeps the outcome per call_id. False for what is not BY_KEY, and for
    handlers that promised (`own_idempotency=True`) to find a repeated call_id themselves.
    """

    name: str
    role: StepRole
    handler: Handler
    effect: Effect
    remembers: bool
    ttl_ms: int = IDEMPOTENCY_TTL_MS_DEFAULT
    operation_timeout_ms: int = 0
    arguments_valid: Validator | None = None
    output_valid: Validator | None = None


class Component:
    """Declarations of one component. `limits` left at 0 take the SDK's defaults."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        limits: Limits | None = None,
        outcomes: OutcomeStore | None = None,
        kind: Kind = Kind.TOOL,
    ) -> None:
        self.name = name
        self.version = version
        self.kind = kind
        self.docs_url = ""
        stated = limits or Limits()
        self.limits = msgspec.structs.replace(
            stated, max_request_bytes=stated.max_request_bytes or MAX_REQUEST_BYTES_DEFAULT
        )
        self.outcomes = outcomes or MemoryOutcomes()
        self.actions: dict[str, Action] = {}
        self._targets: dict[tuple[StepRole, str], Target] = {}
        self._roles: list[Role] = []

    def action(self, name: str, **options: Unpack[ActionOptions]) -> Callable[[H], H]:
        """Offer an action: `function(arguments, call) -> output`, sync or async."""

        def declare(function: H) -> H:
            self._declare_action(name, function, options=options)
            return function

        return declare

    def plan(self, function: H) -> H:
        """Be a planner: `function(request: PlanRequest, call) -> PlanResponse | Plan`."""
        self._add(Role.PLANNER, _role_target(StepRole.PLAN, function, remembers=False))
        return function

    def reflect(self, function: H) -> H:
        """Be a reflector: `function(request: ReflectRequest, call) -> ReflectResponse`."""
        self._add(Role.REFLECTOR, _role_target(StepRole.REFLECT, function, remembers=False))
        return function

    def observe(self, function: H) -> H:
        """Be an observer: `function(request: ObserveRequest, call) -> ObserveResponse`.

        The SDK remembers the answer per call_id, so a repeat stores nothing twice.
        """
        self._add(Role.OBSERVER, _role_target(StepRole.OBSERVE, function, remembers=True))
        return function

    def observe_idempotent(self, function: H) -> H:
        """Like `observe`, for a function that recognises a repeated call_id itself (or stores
        nothing).
        """
        self._add(Role.OBSERVER, _role_target(StepRole.OBSERVE, function, remembers=False))
        return function

    def card(self) -> Card:
        """The card as it stands: what Describe answers."""
        return Card(
            name=self.name,
            version=self.version,
            roles=tuple(self._roles),
            actions=tuple(self.actions.values()),
            limits=self.limits,
            docs_url=self.docs_url,
            kind=self.kind,
        )

    def target(self, role: StepRole, action: str = "") -> Target | None:
        """What answers this call, or None when the component does not offer it."""
        return self._targets.get((role, action))

    def offers(self, role: StepRole) -> bool:
        return any(offered is role for offered, _ in self._targets)

    def run(self, *, http: str | None = None, grpc: str | None = None) -> None:
        """Serve until SIGTERM; addresses as `host:port`, default from ACP_PORT and
        ACP_GRPC_PORT. With ACP_ATTACH set and no address given, attach there instead.
        """
        if http is None and grpc is None and os.environ.get("ACP_ATTACH"):
            self.attach()
            return
        # Imported here: declaring a component must not load servers.
        from acp_spec.sdk.serving import run

        run(self, http=http, grpc=grpc)

    async def serve(
        self, *, http: str = "127.0.0.1:0", grpc: str = "127.0.0.1:0", token: str | None = None
    ) -> "Server":
        """Serve on the running loop: `server.http` and `server.grpc` say where, `await
        server.stop(drain_s=...)` ends it. `run` is this as a process of its own.
        """
        from acp_spec.sdk.serving import Server, parse_address

        server = Server(self, http=parse_address(http), grpc=parse_address(grpc), token=token)
        await server.start()
        return server

    def attach(
        self,
        target: str | None = None,
        *,
        token: str | None = None,
        instance_id: str | None = None,
    ) -> None:
        """Dial a gateway's gRPC side and serve it until SIGTERM; no port is opened. Defaults from
        ACP_ATTACH, ACP_COMPONENT_TOKEN, ACP_INSTANCE (one where a restart is the same instance).
        """
        # Imported here: declaring a component must not load a client.
        from acp_spec.sdk.attach_process import attach

        attach(self, target, token=token, instance_id=instance_id)

    def _declare_action(self, name: str, function: Handler, *, options: ActionOptions) -> None:
        assert name, "an action needs a name"
        assert name not in self.actions, f"action {name!r} is declared twice"
        action = _action(name, function, options=options)
        self.actions[name] = action
        by_key = action.idempotency is Idempotency.BY_KEY
        self._add(
            Role.EXECUTOR,
            Target(
                name=name,
                role=StepRole.EXECUTE,
                handler=function,
                effect=action.effect,
                remembers=by_key and not options.get("own_idempotency", False),
                ttl_ms=action.idempotency_ttl_ms,
                operation_timeout_ms=action.operation_timeout_ms,
                arguments_valid=compile_schema(action.input_schema, f"input_schema of {name}"),
                output_valid=compile_schema(action.output_schema, f"output_schema of {name}"),
            ),
        )

    def _add(self, role: Role, target: Target) -> None:
        key = (target.role, target.name if target.role is StepRole.EXECUTE else "")
        assert key not in self._targets, f"{target.name} is declared twice"
        self._targets[key] = target
        if role not in self._roles:
            self._roles.append(role)


_EFFECT_OF_ROLE = {
    StepRole.PLAN: Effect.READ,
    StepRole.OBSERVE: Effect.WRITE,
    StepRole.REFLECT: Effect.READ,
}


def _role_target(role: StepRole, function: Handler, *, remembers: bool) -> Target:
    return Target(
        name=role.value.lower(),
        role=role,
        handler=function,
        effect=_EFFECT_OF_ROLE[role],
        remembers=remembers,
    )


def _action(name: str, function: Handler, *, options: ActionOptions) -> Action:
    return Action(
        name=name,
        description=options.get("description", _first_paragraph(function)),
        input_schema=write(options["input_schema"]) if "input_schema" in options else ABSENT,
        output_schema=write(options["output_schema"]) if "output_schema" in options else ABSENT,
        effect=options.get("effect", Effect.WRITE),
        idempotency=options.get("idempotency", Idempotency.NONE),
        idempotency_ttl_ms=options.get("idempotency_ttl_ms", IDEMPOTENCY_TTL_MS_DEFAULT),
        timeout_ms=options.get("timeout_ms", 0),
        operation_timeout_ms=options.get("operation_timeout_ms", 0),
        semantics=write(options["semantics"]) if "semantics" in options else ABSENT,
        examples=tuple(_example(example) for example in options.get("examples", ())),
        sandbox=options.get("sandbox"),
    )


def _example(stated: Mapping[str, object]) -> Example:
    unknown = set(stated) - {"arguments", "output", "safe"}
    assert not unknown, f"an example has only arguments, output and safe, not {sorted(unknown)}"
    return Example(
        arguments=write(stated["arguments"]),
        output=write(stated["output"]) if "output" in stated else ABSENT,
        safe=bool(stated.get("safe", False)),
    )


def _first_paragraph(function: Handler) -> str:
    text = (function.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())
