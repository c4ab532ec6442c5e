"""The live governance parameters: what holds now, changed by people, version by version (R09).

Version 1 is what the configuration says. Each change is a whole document, durable and audited
before it holds; whoever changes names the version that the change was made from, so that two people
never overwrite each other. Rules are made once per card and version.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.board.audit import AuditLog
from gateway.governance.backoff import Backoff
from gateway.governance.parameters import Parameters, backoff_for, problem, rules_for
from gateway.governance.rules import Rules
from gateway.runtime.clock import Clock
from gateway.runtime.principal import Principal
from gateway.runtime.targets import Target
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table

_ROWS: Final = b"parameters\0"
_NUMBER_BYTES: Final = 8
NOTE_CHARACTERS_MAX: Final = 500
KEPT_MAX: Final = 1_000
"""Versions in the history; older ones are named in the audit log for ever."""
RULES_MAX: Final = 10_000
"""Cards whose rules are kept made; more than are ever registered at once."""


class ParameterVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version as it is kept and shown. `by`: the token's subject; empty for the first."""

    version: int
    parameters: Parameters
    at_ms: int = 0
    by: str = ""
    note: str = ""


class ParameterChange(msgspec.Struct, frozen=True, kw_only=True):
    """A whole new document; what it leaves out takes its built-in default. `expected_version`: the
    one it was made from."""

    expected_version: int
    parameters: Parameters
    note: str = ""


class ParameterHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Versions, newest first."""

    versions: tuple[ParameterVersion, ...]


class LiveParameters:
    """What holds now, and what has changed it. Without a store it only holds."""

    def __init__(self, defaults: Parameters) -> None:
        self._now = ParameterVersion(version=1, parameters=defaults)
        self._rules: dict[str, Rules] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Told after each change: whoever waits by the old rules is to be asked again."""

    @property
    def current(self) -> ParameterVersion:
        return self._now

    def apply(self, version: ParameterVersion) -> None:
        """Let it hold from now on; an older one changes nothing."""
        if version.version >= self._now.version:
            self._now = version
            self._rules = {}
            self.on_change()

    def rules_for(self, target: Target) -> Rules:
        """What holds for calls of this target now."""
        found = self._rules.get(target.digest)
        if found is None:
            if len(self._rules) >= RULES_MAX:
                self._rules = {}
            found = self._rules[target.digest] = rules_for(
                self._now.parameters,
                target.card,
                version=self._now.version,
            )
        return found

    def backoff_of(self, component: str) -> Backoff:
        """The waits between attempts at this component, where its workflow says nothing."""
        return backoff_for(self._now.parameters, component)

    @property
    def retry_budget(self) -> int:
        """Retries that a session which opens now may spend in all."""
        return self._now.parameters.retry_budget


class ParameterBook:
    """The versions of one gateway, in its store."""

    def __init__(
        self, live: LiveParameters, store: Store, *, durable: Durable, audit: AuditLog, clock: Clock
    ) -> None:
        self._live = live
        self._store = store
        self._durable = durable
        self._audit = audit
        self._clock = clock
        self.unreadable: tuple[str, ...] = ()
        """Stored versions that this program cannot read; the newest readable one holds."""
        self._load()
        self._latest = live.current

    def _load(self) -> None:
        unreadable: list[str] = []
        for key, value in self._store.scan(Table.GOVERNANCE, _ROWS, reverse=True):
            try:
                self._live.apply(msgspec.json.decode(value, type=ParameterVersion))
            except msgspec.MsgspecError as spoilt:
                unreadable.append(f"version {_number(key)}: {spoilt}")
            else:
                break
        self.unreadable = tuple(unreadable)

    @property
    def current(self) -> ParameterVersion:
        """What holds now."""
        return self._live.current

    async def change(self, change: ParameterChange, principal: Principal) -> ParameterVersion:
        """Make a new version; it holds once it is on disk. STALE_STATE, INVALID_REQUEST."""
        latest = self._latest
        if change.expected_version != latest.version:
            message = (
                f"expected_version: the parameters are at version {latest.version}, not"
                f" {change.expected_version}: read them again, then change them"
            )
            raise AcpFailure(error(Reason.STALE_STATE, message))
        _check(change)
        version = ParameterVersion(
            version=latest.version + 1,
            parameters=change.parameters,
            at_ms=self._clock.now_ms(),
            by=principal.subject,
            note=change.note,
        )
        self._keep(version, before=latest, principal=principal)
        await self._durable.synced()
        self._live.apply(version)
        return version

    def _keep(
        self, version: ParameterVersion, *, before: ParameterVersion, principal: Principal
    ) -> None:
        self._latest = version
        self._durable.put(Table.GOVERNANCE, _key(version.version), msgspec.json.encode(version))
        if version.version > KEPT_MAX:
            self._durable.delete(Table.GOVERNANCE, _key(version.version - KEPT_MAX))
        self._audit.record(
            "governance.parameters.changed",
            f"governance:parameters@{version.version}",
            actor=principal.subject,
            tenant=principal.tenant,
            details={
                "before": before.version,
                "changed": list(changed_fields(before.parameters, version.parameters))[:_NAMED_MAX],
                "note": version.note,
            },
        )

    def history(self, *, limit: int) -> tuple[ParameterVersion, ...]:
        """The stored versions, newest first; the configuration's own when there is none."""
        found: list[ParameterVersion] = []
        for _, value in self._store.scan(Table.GOVERNANCE, _ROWS, reverse=True):
            if len(found) >= limit:
                return tuple(found)
            try:
                found.append(msgspec.json.decode(value, type=ParameterVersion))
            except msgspec.MsgspecError:
                continue  # `unreadable` told it at the start
        return tuple(found) or (self._live.current,)


_NAMED_MAX: Final = 100
"""Changed fields that an audit entry names; the document itself is in the history."""


def changed_fields(before: Parameters, after: Parameters) -> Iterator[str]:
    """Dotted names of the leaves that differ."""
    one, other = _leaves(before), _leaves(after)
    return (name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))


def _leaves(parameters: Parameters) -> dict[str, object]:
    found: dict[str, object] = {}
    todo: list[tuple[str, object]] = [("", msgspec.to_builtins(parameters))]
    while todo:
        place, value = todo.pop()
        if isinstance(value, dict) and value:
            todo += [(f"{place}.{name}".lstrip("."), inner) for name, inner in value.items()]
        else:
            found[place] = value
    return found


def _check(change: ParameterChange) -> None:
    wrong = problem(change.parameters)
    if wrong is None and len(change.note) > NOTE_CHARACTERS_MAX:
        wrong = f"note: at most {NOTE_CHARACTERS_MAX} characters"
    if wrong is not None:
        raise AcpFailure(error(Reason.INVALID_REQUEST, wrong))


def _key(version: int) -> bytes:
    return _ROWS + version.to_bytes(_NUMBER_BYTES, "big")


def _number(key: bytes) -> int:
    return int.from_bytes(key[len(_ROWS) :], "big")
