"""Workflow versions: stored once, never changed, one of each name active (SPEC section 6).

The file's bytes are the truth and go to disk before a PUT is answered; what is parsed from them is
a cache by digest. A stored version is never re-validated: it was good when it entered, and sessions
that run on it must go on. Who is registered now is told (`Advice`), and only ambiguity refuses.
"""

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from acp_spec.bindings.errors import error, invalid_request, refused_by_state
from acp_spec.model import semver
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.gateway_calls import WorkflowVersion
from acp_spec.model.payload import payload
from acp_spec.model.session import Problem, Validation
from acp_spec.model.times import rfc3339
from gateway.board.changes import Release
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_stored, parse_workflow
from gateway.runtime.clock import Clock
from gateway.runtime.permits import Permit, PermitActivation, activate_all
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.workflow_advice import advice
from gateway.stores.durable import Durable
from gateway.stores.errors import StoreError
from gateway.stores.ports import Store, Table
from gateway.stores.rows import read_row
from gateway.stores.tables import NUL, workflow_row
from gateway.telemetry.logs import get_log

log = get_log("gateway.workflows")

# A workflow is written by people; parsing is slow per byte and holds the loop.
SOURCE_BYTES_MAX: Final = 256 * 1024
# Parsed workflows kept; beyond it a parse of some ms comes back.
PARSED_MAX: Final = 256
# Versions in all; each keeps a line in memory.
VERSIONS_MAX: Final = 20_000


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One version on disk. `source` is the file as it was put."""

    source: str
    sha256: str
    stored_at_ms: int
    retired: bool = False


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """One version in memory, without its text."""

    sha256: str
    stored_at_ms: int


class Workflows:
    """The workflows of one gateway. `catalog` gives who is registered at the moment."""

    def __init__(
        self, store: Store, durable: Durable, *, clock: Clock, catalog: Callable[[], Catalog]
    ) -> None:
        self._store = store
        self._durable = durable
        self._clock = clock
        self._catalog = catalog
        self._versions: dict[str, dict[str, _Known]] = {}
        self._retired: dict[str, dict[str, _Known]] = {}
        self._active: dict[str, str] = {}
        self._by_digest: dict[str, tuple[str, str]] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._parsed: OrderedDict[str, Workflow] = OrderedDict()
        self.permit: PermitActivation = activate_all
        """Asked before a version becomes active; the assembly puts the board here."""
        self.told: Callable[[Release, Principal], None] = lambda release, principal: None
        """Hears of every version that is stored, in the same batch."""
        self.dropped: Callable[[Release, Principal], None] = lambda release, principal: None
        """Hears of every version that is deleted, in the same batch."""
        self.in_use: Callable[[str, str], str] = lambda name, version: ""
        """Why this version may not be deleted now, in words; empty: it may."""
        self.measurers: list[str] = []
        """Subjects whose sessions are figures for the board: they run what is not approved yet."""
        for key, value in store.scan(Table.WORKFLOW, b""):
            self._load(key, value)

    # ---- for sessions --------------------------------------------------------------------------

    def resolve(self, reference: str) -> Workflow:
        """The workflow of `name` (its active version) or `name@range`; raises NOT_FOUND.

        In a range the active version is preferred, else the newest that lies in it.
        """
        try:
            name, wanted = semver.split_name(reference)
        except semver.VersionError as problem:
            raise invalid_request(f"workflow: {problem}") from None
        versions = self._versions.get(name)
        if versions is None:
            raise _not_found(f"workflow: there is no {name!r}; put one, or list /v1/workflows")
        active = self._active[name]
        if active in versions and (not wanted or semver.matches(active, wanted)):
            return self._workflow(name, active)
        if not wanted:
            raise _not_found(f"workflow: no version of {name!r} is active any more: activate one")
        fitting = [version for version in versions if semver.matches(version, wanted)]
        if not fitting:
            stored = ", ".join(sorted(versions, key=semver.parse))
            raise _not_found(
                f"workflow: no version of {name!r} is in {wanted!r}; there are {stored}"
            )
        return self._workflow(name, max(fitting, key=semver.parse))

    def exact(self, name: str, version: str) -> Workflow:
        """One version, for a session that was pinned to it; raises NOT_FOUND."""
        self._known(name, version)
        return self._workflow(name, version)

    def by_digest(self, source_digest: str) -> Workflow | None:
        """The workflow whose file has this SHA-256, or None."""
        place = self._by_digest.get(source_digest)
        return None if place is None else self._workflow(*place)

    # ---- for operators -------------------------------------------------------------------------

    async def put(
        self, name: str, version: str, *, source: bytes, principal: Principal = LOCAL
    ) -> tuple[WorkflowVersion, bool]:
        """Store a version; (it, True) if it is new, (it, False) if the same bytes were stored.

        Raises INVALID_REQUEST with all problems, ALREADY_EXISTS for other bytes.
        """
        known = self._versions.get(name, {}).get(version)
        retired = self._retired.get(name, {}).get(version)
        stored = known or retired
        if stored is not None and stored.sha256 != hashlib.sha256(source).hexdigest():
            message = f"{name}@{version} was stored with other bytes: raise the version instead"
            raise AcpFailure(error(Reason.ALREADY_EXISTS, message))
        if known is not None:
            await self._durable.synced()  # the first put may still be on its way to disk
            return self._view(name, version), False
        workflow = _checked(source, self._catalog())
        if (workflow.name, workflow.version) != (name, version):
            raise invalid_request(
                f"the file says workflow {workflow.name!r}, version {workflow.version!r}, but the"
                f" path says {name!r}, {version!r}: make them equal"
            )
        if retired is None and len(self._by_digest) >= VERSIONS_MAX:
            raise invalid_request(f"{VERSIONS_MAX} versions are stored already")
        self._store_new(workflow, source.decode())
        self.told(self._release(name, version), principal)
        try:
            await self._durable.synced()
        except StoreError:
            if retired is None:
                self._forget(name, version)
            else:
                self._withdraw(name, version)
            raise
        return self._view(name, version), True

    async def delete(self, name: str, version: str, *, principal: Principal = LOCAL) -> None:
        """Take a version out of use: no list shows it, no session opens on it.

        Its bytes stay, for the sessions that ran it are read and replayed with them; the same bytes
        put again bring it back, others never take its name. Raises NOT_FOUND, and WORKFLOW_IN_USE.
        """
        await self._durable.synced()  # a put of it may still be on its way to disk
        self._known(name, version)
        is_active = self._active[name] == version
        beside = is_active and len(self._versions[name]) > 1
        why = "it is the active version, activate another" if beside else ""
        why = why or self.in_use(name, version)
        if why:
            message = f"{name}@{version} cannot be deleted now: {why}"
            raise AcpFailure(refused_by_state("WORKFLOW_IN_USE", message))
        release = self._release(name, version)
        row = msgspec.structs.replace(self._read(name, version), retired=True)
        self._durable.put(Table.WORKFLOW, workflow_row(name, version), msgspec.json.encode(row))
        self._withdraw(name, version)
        self.dropped(release, principal)
        try:
            await self._durable.synced()
        except StoreError:
            self._remember(name, version, row=msgspec.structs.replace(row, retired=False))
            raise

    def permitted(self, name: str, version: str, *, principal: Principal = LOCAL) -> Permit:
        """What allows this version to become the active one; raises as `activate` does."""
        self._known(name, version)
        before, after = self._release(name, self._active[name]), self._release(name, version)
        return self.permit(before, after, principal=principal)

    def permit_session(self, workflow: Workflow, *, principal: Principal) -> None:
        """May a session run this version by naming it? PERMISSION_DENIED where it may not serve.

        What needs an approved proposal to become active would else serve without one.
        """
        is_active = self._active.get(workflow.name) == workflow.version
        if not is_active and principal.subject not in self.measurers:
            self.permitted(workflow.name, workflow.version, principal=principal)

    async def activate(
        self, name: str, version: str, *, principal: Principal = LOCAL
    ) -> WorkflowVersion:
        """Make a stored version the one that `name` alone means.

        Raises NOT_FOUND, and PERMISSION_DENIED for a change that needs an approved proposal.
        """
        before = self._active.get(name, "")
        permit = self.permitted(name, version, principal=principal)
        self._active[name] = version
        self._durable.put(Table.WORKFLOW, workflow_row(name), version.encode())
        permit.done()
        try:
            await self._durable.synced()
        except StoreError:
            self._active[name] = before  # what was refused is never shown as what holds
            raise
        return self._view(name, version)

    def versions(self, name: str = "") -> tuple[WorkflowVersion, ...]:
        """Every version of one workflow, or of all, by name and version; raises NOT_FOUND."""
        if name and name not in self._versions:
            raise _not_found(f"there is no workflow {name!r}")
        names = (name,) if name else sorted(self._versions)
        return tuple(
            self._view(one, version)
            for one in names
            for version in sorted(self._versions[one], key=semver.parse)
        )

    def stored(self, name: str, version: str) -> WorkflowVersion:
        """One version with its source; raises NOT_FOUND."""
        self._known(name, version)
        return self._view(name, version, source=self._read(name, version).source)

    def validate(self, source: bytes) -> Validation:
        """What is wrong with a file, and what is worth knowing; nothing is stored.

        A valid file may have problems too: those begin with `note:` and do not refuse it.
        """
        parsed = _parse(source)
        if not isinstance(parsed, Workflow):
            return Validation(valid=False, problems=parsed)
        found = advice(parsed, self._catalog())
        return Validation(valid=not found.refusals, problems=found.refusals + found.notes)

    def active(self) -> tuple[Release, ...]:
        """The active version of every workflow."""
        return tuple(self._release(name, version) for name, version in self._served())

    def active_digests(self) -> tuple[tuple[str, str, str], ...]:
        """(name, version, SHA-256) of every active version; nothing is parsed for it."""
        return tuple(
            (name, version, self._versions[name][version].sha256)
            for name, version in self._served()
        )

    def naming(self, component: str) -> tuple[str, ...]:
        """The workflows whose active version has a step on the component of that name."""
        return tuple(
            name
            for name, version in self._served()
            if component in self._components_of(name, version)
        )

    # ---- inside --------------------------------------------------------------------------------

    def _served(self) -> list[tuple[str, str]]:
        """Name and active version of those that have one; a deleted one stays what was before the
        next, so that nothing becomes active unasked."""
        active = sorted(self._active.items())
        return [
            (name, version) for name, version in active if version in self._versions.get(name, ())
        ]

    def _release(self, name: str, version: str) -> Release:
        workflow = self._workflow(name, version)
        return Release(
            name=name,
            version=version,
            sha256=workflow.source_digest,
            sla=frozenset(workflow.contract.sla),
        )

    def _store_new(self, workflow: Workflow, source: str) -> None:
        name, version = workflow.name, workflow.version
        now_ms = self._clock.now_ms()
        row = _Row(source=source, sha256=workflow.source_digest, stored_at_ms=now_ms)
        self._durable.put(Table.WORKFLOW, workflow_row(name, version), msgspec.json.encode(row))
        self._remember(name, version, row=row)
        self._cache(workflow)
        if name not in self._active:
            self._active[name] = version
            self._durable.put(Table.WORKFLOW, workflow_row(name), version.encode())
            self.permit(None, self._release(name, version), principal=LOCAL).done()

    def _load(self, key: bytes, value: bytes) -> None:
        name, _, version = key.partition(NUL)
        if not version:
            self._active[name.decode()] = value.decode()
            return
        row = read_row(Table.WORKFLOW, (key, value), kind=_Row)
        self._remember(name.decode(), version.decode(), row=row)

    def _remember(self, name: str, version: str, *, row: _Row) -> None:
        known = _Known(sha256=row.sha256, stored_at_ms=row.stored_at_ms)
        into = self._retired if row.retired else self._versions
        into.setdefault(name, {})[version] = known
        if not row.retired:
            self._retired.get(name, {}).pop(version, None)
        self._by_digest[row.sha256] = (name, version)

    def _withdraw(self, name: str, version: str) -> None:
        """Known, but for nobody to use."""
        self._retired.setdefault(name, {})[version] = self._versions[name].pop(version)
        if not self._versions[name]:
            del self._versions[name]

    def _forget(self, name: str, version: str) -> None:
        """Take back a version that did not reach the disk."""
        known = self._versions[name].pop(version, None)
        if known is not None:
            self._by_digest.pop(known.sha256, None)
            self._named.pop(known.sha256, None)
        if self._active.get(name) == version:
            del self._active[name]
        if not self._versions[name]:
            del self._versions[name]

    def _workflow(self, name: str, version: str) -> Workflow:
        found = self._versions.get(name, {}).get(version) or self._retired[name][version]
        digest = found.sha256
        cached = self._parsed.get(digest)
        if cached is not None:
            self._parsed.move_to_end(digest)
            return cached
        workflow, ignored = parse_stored(self._read(name, version).source.encode())
        if ignored:
            why = f"line {ignored[0].line}, {ignored[0].path}: {ignored[0].message}"
            log.warning("contract_ignored", workflow=f"{name}@{version}", why=why)
        self._cache(workflow)
        return workflow

    def _components_of(self, name: str, version: str) -> frozenset[str]:
        """Whom its steps name; known without reading the file again, for every removal asks."""
        digest = self._versions[name][version].sha256
        if digest not in self._named:
            self._workflow(name, version)
        return self._named[digest]

    def _cache(self, workflow: Workflow) -> None:
        named = {sys.intern(step.component) for step in workflow.steps if step.component}
        self._named[workflow.source_digest] = frozenset(named)
        self._parsed[workflow.source_digest] = workflow
        if len(self._parsed) > PARSED_MAX:
            self._parsed.popitem(last=False)

    def _read(self, name: str, version: str) -> _Row:
        value = self._store.get(Table.WORKFLOW, workflow_row(name, version))
        assert value is not None, f"{name}@{version} is known, so it is on disk"
        return msgspec.json.decode(value, type=_Row)

    def _known(self, name: str, version: str) -> _Known:
        known = self._versions.get(name, {}).get(version)
        if known is None:
            raise _not_found(f"there is no version {version!r} of a workflow {name!r}")
        return known

    def _view(self, name: str, version: str, *, source: str = "") -> WorkflowVersion:
        known = self._versions[name][version]
        return WorkflowVersion(
            name=name,
            version=version,
            active=self._active.get(name) == version,
            sha256=known.sha256,
            stored_at=rfc3339(known.stored_at_ms),
            source=source,
        )


def _parse(source: bytes) -> Workflow | tuple[Problem, ...]:
    if len(source) > SOURCE_BYTES_MAX:
        message = f"a workflow file has at most {SOURCE_BYTES_MAX} bytes, this one {len(source)}"
        return (Problem(line=1, column=1, path="", message=message),)
    return parse_workflow(source)


def _checked(source: bytes, catalog: Catalog) -> Workflow:
    """The workflow, or INVALID_REQUEST with every problem in the details."""
    parsed = _parse(source)
    problems = advice(parsed, catalog).refusals if isinstance(parsed, Workflow) else parsed
    if not problems and isinstance(parsed, Workflow):
        return parsed
    first = problems[0]
    more = f" (and {len(problems) - 1} more, see details)" if len(problems) > 1 else ""
    message = f"line {first.line}, column {first.column}, {first.path}: {first.message}{more}"
    details = payload(msgspec.json.encode({"problems": problems}))
    failure = error(Reason.INVALID_REQUEST, message)
    raise AcpFailure(msgspec.structs.replace(failure, details=details))


def _not_found(message: str) -> AcpFailure:
    return AcpFailure(error(Reason.NOT_FOUND, message))
