"""What a rollout moves between: versions of components, workflows and recovery policies.

One small class per kind, all of one shape; `Versions` picks the class. Activation puts its rows
before it first waits, so it stands in one batch with the rollout's own row.
"""

from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.engine.catalog import Catalog
from gateway.engine.policies import POLICY_NAMES, policy_problem
from gateway.governance.rollout_spec import Kind, Subject
from gateway.runtime.targets import Target
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.rows import read_row

DEFAULT_POLICY: Final = "default"
"""Name of the parameters that the gateway's own configuration gives."""
_POLICY: Final = b"policy\0"


class Versioned(Protocol):
    """Something with versions, one of them active."""

    def active(self, name: str) -> str:
        """The active version; empty when there is nothing of this name."""

    def problem(self, subject: Subject) -> str | None:
        """Why the candidate cannot be tried; None when it can."""

    def available(self, subject: Subject) -> bool:
        """Whether sessions could be served by the candidate now."""

    def permitted(self, subject: Subject) -> None:
        """Raises what activating the candidate would be refused with now."""

    async def activate(self, subject: Subject, version: str) -> None:
        """Make one of the subject's two versions the active one."""


class Components(Protocol):
    """What is asked of the registry."""

    def catalog(self) -> Catalog: ...

    def pick(self, pin: str, session_id: str) -> Target | None: ...

    async def activate(self, name: str, version: str) -> None: ...


class ComponentVersions:
    """Versions of registered components."""

    def __init__(self, registry: Components) -> None:
        self._registry = registry

    def active(self, name: str) -> str:
        return self._registry.catalog().active.get(name, "")

    def problem(self, subject: Subject) -> str | None:
        pin = f"{subject.name}@{subject.candidate}"
        found = self._registry.catalog().exact(pin)
        return None if found else f"no instance of {pin} is registered: register it first"

    def available(self, subject: Subject) -> bool:
        return self._registry.pick(f"{subject.name}@{subject.candidate}", "") is not None

    def permitted(self, subject: Subject) -> None:
        return  # asked when it was registered

    async def activate(self, subject: Subject, version: str) -> None:
        await self._registry.activate(subject.name, version)


class WorkflowVersions:
    """Stored versions of workflows."""

    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows

    def active(self, name: str) -> str:
        try:
            return self._workflows.resolve(name).version
        except AcpFailure:
            return ""

    def problem(self, subject: Subject) -> str | None:
        try:
            self._workflows.exact(subject.name, subject.candidate)
        except AcpFailure as failure:
            return f"{failure.error.message}: store it first"
        return None

    def available(self, subject: Subject) -> bool:
        return True

    def permitted(self, subject: Subject) -> None:
        self._workflows.permitted(subject.name, subject.candidate)

    async def activate(self, subject: Subject, version: str) -> None:
        await self._workflows.activate(subject.name, version)


class ActivePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters under which sessions open; none: those of the configuration."""

    version: str = DEFAULT_POLICY
    params: dict[str, int] = {}


class PolicyVersions:
    """Sets of parameters of a recovery policy; the active one is kept on disk."""

    def __init__(self, store: Store, durable: Durable) -> None:
        self._durable = durable
        self._active: dict[str, ActivePolicy] = {}
        for key, value in store.scan(Table.GOVERNANCE, _POLICY):
            name = key.removeprefix(_POLICY).decode()
            self._active[name] = read_row(Table.GOVERNANCE, (key, value), kind=ActivePolicy)
        self._texts = {name: text_of(one.params) for name, one in self._active.items()}

    def params(self, name: str) -> str:
        """The active parameters as JSON text; empty where the configuration's hold."""
        return self._texts.get(name, "")

    def active(self, name: str) -> str:
        if name not in POLICY_NAMES:
            return ""
        return self._active.get(name, ActivePolicy()).version

    def problem(self, subject: Subject) -> str | None:
        return policy_problem(subject.name, msgspec.json.encode(subject.params))

    def available(self, subject: Subject) -> bool:
        return True

    def permitted(self, subject: Subject) -> None:
        return  # nothing governs a policy's parameters

    async def activate(self, subject: Subject, version: str) -> None:
        is_candidate = version == subject.candidate
        params = subject.params if is_candidate else subject.baseline_params
        active = ActivePolicy(version=version, params=params)
        self._active[subject.name], self._texts[subject.name] = active, text_of(params)
        key = _POLICY + subject.name.encode()
        self._durable.put(Table.GOVERNANCE, key, msgspec.json.encode(active))
        await self._durable.synced()

    def active_params(self, name: str) -> dict[str, int]:
        """The active parameters; none where the configuration's hold."""
        return self._active.get(name, ActivePolicy()).params


class Versions:
    """The versions of everything, by kind."""

    def __init__(
        self,
        components: Versioned,
        workflows: Versioned,
        *,
        policies: PolicyVersions,
    ) -> None:
        self.policies = policies
        self._by_kind: dict[Kind, Versioned] = {
            Kind.COMPONENT: components,
            Kind.WORKFLOW: workflows,
            Kind.POLICY: policies,
        }

    def of(self, subject: Subject) -> Versioned:
        return self._by_kind[subject.kind]

    def based(self, subject: Subject) -> Subject:
        """The subject with its baseline: the version that is active now. Raises NOT_FOUND, or
        INVALID_REQUEST when another baseline was named or the candidate cannot be tried."""
        versioned = self.of(subject)
        active, what = (
            versioned.active(subject.name),
            f"{subject.kind.value.lower()} {subject.name!r}",
        )
        if not active:
            raise AcpFailure(error(Reason.NOT_FOUND, f"subject: there is no {what}"))
        problem = versioned.problem(subject)
        if subject.baseline not in ("", active):
            problem = f"the active version of {what} is {active}, not {subject.baseline}"
        if subject.candidate == active:
            problem = f"{active} is active already"
        if problem is not None:
            raise AcpFailure(error(Reason.INVALID_REQUEST, f"subject: {problem}"))
        params = self.policies.active_params(subject.name) if subject.kind is Kind.POLICY else {}
        return msgspec.structs.replace(subject, baseline=active, baseline_params=params)


def text_of(params: dict[str, int]) -> str:
    """Parameters as a session carries them; none: the configuration's."""
    return msgspec.json.encode(params).decode() if params else ""
