"""Reviewing what no domain knew: a person says what it means, and a new version knows it (R13).

A stored version never changes: accepted synonyms make the next minor version of the workflow, not
active yet, so that it goes live like any other. Who accepted what stands in the audit log.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.model import semver
from gateway.board.audit import AuditLog
from gateway.engine.definition import Workflow
from gateway.governance.domains import (
    VALUE_CHARACTERS_MAX,
    Candidate,
    Domain,
    Nearest,
    place,
)
from gateway.governance.semantics import Semantics
from gateway.runtime.principal import Principal
from gateway.runtime.synonym_source import Synonym, with_synonyms
from gateway.runtime.unknown_values import Unknown, UnknownValues
from gateway.runtime.workflows import Workflows

TURN: Final = 4
"""Values looked at before others may work: some milliseconds."""
SYNONYMS_MAX: Final = 200
"""One sitting. The audit entry names each."""
NAMED_BYTES_MAX: Final = 32 * 1024
"""Of values in an audit entry, which has a bound of its own."""


class SemanticsRow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that has values to look at."""

    workflow: str
    unknown: int


class SemanticsPage(msgspec.Struct, frozen=True, kw_only=True):
    workflows: tuple[SemanticsRow, ...] = ()


class UnknownView(msgspec.Struct, frozen=True, kw_only=True):
    """A value with those that come nearest in the active version; `means`: it is known there."""

    unknown: Unknown
    nearest: tuple[Candidate, ...] = ()
    means: str = ""


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reviewed of one workflow, the most frequent first."""

    workflow: str
    active: str
    values: tuple[UnknownView, ...] = ()


class AcceptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`base`: the version that is edited (the active one); `version`: the new one (next minor)."""

    synonyms: tuple[Synonym, ...]
    base: str = ""
    version: str = ""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The new version, and how many collected values it settles."""

    workflow: str
    base: str
    version: str
    sha256: str
    active: bool
    synonyms: tuple[Synonym, ...]
    settled: int


class Dismissed(msgspec.Struct, frozen=True, kw_only=True):
    """A value that means nothing here; it is forgotten until it comes again."""

    domain: str
    value: str


class DismissRequest(msgspec.Struct, frozen=True, kw_only=True):
    values: tuple[Dismissed, ...]


class DismissAnswer(msgspec.Struct, frozen=True, kw_only=True):
    settled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticsReview:
    """The review of one gateway."""

    unknown: UnknownValues
    workflows: Workflows
    audit: AuditLog
    nearest: Nearest

    def page(self, tenant: str) -> SemanticsPage:
        """Workflows with something to look at."""
        rows = self.unknown.workflows(tenant)
        return SemanticsPage(
            workflows=tuple(SemanticsRow(workflow=name, unknown=count) for name, count in rows)
        )

    async def of(self, workflow: str, *, tenant: str) -> ReviewPage:
        """The values of one workflow; NOT_FOUND when there is no such workflow. In turns with all
        other work: there may be thousands, and each is compared with a whole domain."""
        active = self.workflows.resolve(_bare(workflow))
        semantics = active.contract.semantics
        values: list[UnknownView] = []
        for row in self.unknown.of(tenant, workflow):
            values.append(self._view(row, semantics))
            if len(values) % TURN == 0:
                await asyncio.sleep(0)
        return ReviewPage(workflow=workflow, active=active.version, values=tuple(values))

    def _view(self, row: Unknown, semantics: Semantics | None) -> UnknownView:
        domain = semantics.domains.get(row.domain) if semantics is not None else None
        if domain is None:
            return UnknownView(unknown=row)
        nearest = tuple(self.nearest(domain, row.value))
        found = place(domain, row.value, nearest=lambda domain, text: nearest)
        return UnknownView(unknown=row, nearest=nearest, means=found.value)

    async def accept(
        self, workflow: str, request: AcceptRequest, *, principal: Principal
    ) -> Accepted:
        """Store the next version with these synonyms; answered once it is durable."""
        base = self._base(workflow, request.base)
        synonyms = _checked(base, request.synonyms)
        version = request.version or self._next(workflow, base.version)
        source = self.workflows.stored(workflow, base.version).source
        edited = with_synonyms(source, synonyms, version=version)
        stored, is_new = await self.workflows.put(workflow, version, source=edited.encode())
        if is_new:
            self.audit.record(
                "semantics.accept",
                f"workflow:{workflow}@{version}",
                actor=principal.subject,
                tenant=principal.tenant,
                details={
                    "base": base.version,
                    "sha256": stored.sha256,
                    "synonyms": _brief(synonyms),
                },
            )
        settled = sum(
            self.unknown.settle(principal.tenant, workflow, domain=one.domain, value=one.value)
            for one in synonyms
        )
        await self.audit.synced()
        return Accepted(
            workflow=workflow,
            base=base.version,
            version=version,
            sha256=stored.sha256,
            active=stored.active,
            synonyms=synonyms,
            settled=settled,
        )

    async def dismiss(
        self, workflow: str, request: DismissRequest, *, principal: Principal
    ) -> DismissAnswer:
        """Forget values that mean nothing here."""
        self.workflows.resolve(_bare(workflow))
        _check_count(len(request.values))
        settled = sum(
            self.unknown.settle(principal.tenant, workflow, domain=one.domain, value=one.value)
            for one in request.values
        )
        self.audit.record(
            "semantics.dismiss",
            f"workflow:{workflow}",
            actor=principal.subject,
            tenant=principal.tenant,
            details={"values": _brief(request.values), "settled": settled},
        )
        await self.audit.synced()
        return DismissAnswer(settled=settled)

    def _base(self, workflow: str, version: str) -> Workflow:
        name = _bare(workflow)
        return self.workflows.exact(name, version) if version else self.workflows.resolve(name)

    def _next(self, workflow: str, base: str) -> str:
        """The next minor version that is not stored."""
        taken = {one.version for one in self.workflows.versions(workflow)}
        parsed = semver.parse(base)
        minor = parsed.minor + 1
        while f"{parsed.major}.{minor}.0" in taken:
            minor += 1
        return f"{parsed.major}.{minor}.0"


def _checked(base: Workflow, synonyms: tuple[Synonym, ...]) -> tuple[Synonym, ...]:
    """Those that are new; a synonym that cannot be one is told with its place in the request."""
    _check_count(len(synonyms))
    semantics = base.contract.semantics
    if semantics is None:
        raise invalid_request(f"{base.name}@{base.version} declares no semantics")
    fresh = tuple(
        one
        for place_in, one in enumerate(dict.fromkeys(synonyms))
        if not _known(semantics, one, where=f"synonyms[{place_in}]")
    )
    if not fresh:
        raise invalid_request(f"{base.name}@{base.version} knows all of these already")
    return fresh


def _known(semantics: Semantics, synonym: Synonym, *, where: str) -> bool:
    domain = semantics.domains.get(synonym.domain)
    if domain is None:
        known = ", ".join(sorted(semantics.domains)) or "none"
        raise invalid_request(
            f"{where}.domain: there is no {synonym.domain[:64]!r}; there are: {known}"
        )
    if synonym.means not in domain.values:
        said = synonym.means[:64]
        raise invalid_request(f"{where}.means: {said!r} is not in the domain {domain.shown()}")
    if not synonym.value.strip() or len(synonym.value) > VALUE_CHARACTERS_MAX:
        most = f"a text of 1 to {VALUE_CHARACTERS_MAX} characters"
        raise invalid_request(f"{where}.value: a synonym is {most}")
    return _means(domain, synonym.value) == synonym.means


def _means(domain: Domain, value: str) -> str:
    """What the value means without a guess."""
    return place(domain, value, nearest=lambda _domain, _text: ()).value


def _brief(named: tuple[Synonym, ...] | tuple[Dismissed, ...]) -> object:
    """What an audit entry names: the values, or their digest when they are many and long."""
    text = msgspec.json.encode(named)
    if len(text) <= NAMED_BYTES_MAX:
        return named
    return {"count": len(named), "sha256": hashlib.sha256(text).hexdigest()}


def _check_count(count: int) -> None:
    if not 1 <= count <= SYNONYMS_MAX:
        raise invalid_request(f"name 1 to {SYNONYMS_MAX} values, these are {count}")


def _bare(workflow: str) -> str:
    """A name alone: the version of a review is the active one, or `base`."""
    if "@" in workflow:
        raise invalid_request(
            "workflow: name it without a version; `base` says which one is edited"
        )
    return workflow
