"""The reward rules of one gateway: stored by name and version, one of them holds, all kept.

A version never changes: the same text again is fine, another text under the same version is not. A
change holds once it is on disk and audited; what is refused leaves the rules that held, and says
why for as long as nothing newer was taken.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from acp_spec.bindings.errors import error, invalid_request, refused_by_state
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.reward_vector import RulesRef
from acp_spec.model.session import Problem
from gateway.board.audit import AuditLog
from gateway.rewards.rules import RewardRules
from gateway.rewards.rules_file import parse_rules
from gateway.rewards.scoring import Scorer
from gateway.runtime.kept_rows import kept_rows
from gateway.runtime.principal import Principal
from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table
from gateway.stores.tables import text_part
from gateway.telemetry.logs import get_log

_ROWS: Final = b"rewards\0"
_HOLDS: Final = b"rewards-holds\0"
VERSIONS_MAX: Final = 1_000
"""Kept for ever, because rewards name them; somebody who stores more does it by mistake."""
SHOWN_PROBLEMS: Final = 10
"""Of a refused text, in one message; `acp rewards check` tells all of them."""

log = get_log("gateway.rewards")


class StoredRules(msgspec.Struct, frozen=True, kw_only=True):
    """One version as it is kept. `by`: the token's subject, or the file it was read from."""

    ref: RulesRef
    source: str
    stored_at_ms: int
    by: str


class RulesVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version in a list."""

    ref: RulesRef
    stored_at_ms: int
    by: str
    holds: bool


class RefusedRules(msgspec.Struct, frozen=True, kw_only=True):
    """The last text that was not taken, and why; what held before still holds."""

    by: str
    at_ms: int
    problems: tuple[str, ...]


class RulesPage(msgspec.Struct, frozen=True, kw_only=True):
    """`holds`: the rules that rewards are made by now; none: as given."""

    holds: RulesRef | None = None
    versions: tuple[RulesVersion, ...] = ()
    refused: RefusedRules | None = None


class _Holds(msgspec.Struct, frozen=True, kw_only=True):
    ref: RulesRef | None = None


class RewardBook:
    """Stores rules and lets one version hold. `from_file`: only that file may change them."""

    def __init__(
        self,
        scorer: Scorer,
        store: Store,
        *,
        durable: Durable,
        audit: AuditLog,
        now_ms: Callable[[], int],
    ) -> None:
        self._scorer = scorer
        self._durable = durable
        self._audit = audit
        self._now_ms = now_ms
        self.from_file = ""
        self._changes = 0
        self._refused: RefusedRules | None = None
        found = kept_rows(store, _ROWS, kind=StoredRules)
        self._stored = {(row.ref.name, row.ref.version): row for _, row in found}
        for _, row in kept_rows(store, _HOLDS, kind=_Holds):
            self._begin(row.ref)

    def _begin(self, ref: RulesRef | None) -> None:
        stored = None if ref is None else self._stored.get((ref.name, ref.version))
        if stored is None:
            return
        rules = parse_rules(stored.source.encode())
        if isinstance(rules, RewardRules):
            self._scorer.rules = rules
        else:  # this program reads them otherwise than the one that took them
            self._refuse(_lines(rules), by=stored.by)

    @property
    def page(self) -> RulesPage:
        holds = self._scorer.rules.ref if self._scorer.rules is not None else None
        rows = sorted(self._stored.values(), key=lambda row: (row.stored_at_ms, row.ref.version))
        return RulesPage(
            holds=holds,
            versions=tuple(
                RulesVersion(
                    ref=row.ref,
                    stored_at_ms=row.stored_at_ms,
                    by=row.by,
                    holds=row.ref == holds,
                )
                for row in rows
            ),
            refused=self._refused,
        )

    def stored(self, name: str, version: str) -> StoredRules:
        """One version with its text; NOT_FOUND."""
        found = self._stored.get((name, version))
        if found is None:
            message = f"there are no reward rules {name}@{version}: `acp rewards show` lists them"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        return found

    async def put(self, source: str, principal: Principal) -> RulesPage:
        """Store the rules and let them hold. INVALID_REQUEST tells every fault with its place."""
        self._refuse_beside_file()
        await self.take(source, principal, by=principal.subject)
        return self.page

    async def drop(self, principal: Principal) -> RulesPage:
        """Let no rules hold: rewards are as given from now on. Stored versions stay."""
        self._refuse_beside_file()
        if self._scorer.rules is not None:
            before = self._scorer.rules.ref
            self._keep(None, principal, by=principal.subject, before=before)
            await self._hold(None)
        return self.page

    async def take(self, source: str, principal: Principal, *, by: str) -> None:
        """Store and let hold, once it is on disk. What is refused is remembered and raised."""
        try:
            rules = self._checked(source)
        except AcpFailure as refused:
            self._refuse(tuple(refused.error.message.splitlines()), by=by)
            raise
        before = self._scorer.rules.ref if self._scorer.rules is not None else None
        if rules.ref != before:
            self._keep(rules, principal, by=by, before=before, source=source)
            await self._hold(rules)
        self._refused = None

    async def _hold(self, rules: RewardRules | None) -> None:
        """Once it is on disk; whoever changed it meanwhile is the one who is heard."""
        self._changes += 1
        change = self._changes
        await self._durable.synced()
        if change == self._changes:
            self._scorer.rules = rules

    def tell_refused(self, problem: str, *, by: str) -> None:
        """A source that could not even be read."""
        self._refuse((problem,), by=by)

    def _checked(self, source: str) -> RewardRules:
        rules = parse_rules(source.encode())
        if not isinstance(rules, RewardRules):
            raise invalid_request("\n".join(_lines(rules)))
        ref = rules.ref
        known = self._stored.get((ref.name, ref.version))
        if known is not None and known.ref != ref:
            message = f"{ref.name}@{ref.version} is stored with another text: give it a new version"
            raise AcpFailure(error(Reason.ALREADY_EXISTS, message))
        if known is None and len(self._stored) >= VERSIONS_MAX:
            message = f"{VERSIONS_MAX} versions of reward rules are stored, more are not taken"
            raise AcpFailure(refused_by_state("TOO_MANY_VERSIONS", message))
        return rules

    def _keep(
        self,
        rules: RewardRules | None,
        principal: Principal,
        *,
        by: str,
        before: RulesRef | None,
        source: str = "",
    ) -> None:
        ref = rules.ref if rules is not None else None
        if ref is not None and (ref.name, ref.version) not in self._stored:
            row = StoredRules(ref=ref, source=source, stored_at_ms=self._now_ms(), by=by)
            self._stored[ref.name, ref.version] = row
            key = _ROWS + text_part(ref.name) + ref.version.encode()
            self._durable.put(Table.GOVERNANCE, key, msgspec.json.encode(row))
        self._durable.put(Table.GOVERNANCE, _HOLDS, msgspec.json.encode(_Holds(ref=ref)))
        self._audit.record(
            "rewards.rules.changed",
            f"rewards:{ref.name}@{ref.version}" if ref is not None else "rewards:none",
            actor=by,
            tenant=principal.tenant,
            details={"before": before, "after": ref},
        )

    def _refuse(self, problems: tuple[str, ...], *, by: str) -> None:
        refused = RefusedRules(by=by, at_ms=self._now_ms(), problems=problems)
        log.warning("reward_rules_refused", by=by, problems="; ".join(problems))
        self._refused = refused

    def _refuse_beside_file(self) -> None:
        if self.from_file:
            message = (
                f"the rules are those of {self.from_file} (rewards.rules_file): change that file"
            )
            raise AcpFailure(refused_by_state("RULES_IN_A_FILE", message))


def _lines(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    shown = [f"{p.line}:{p.column}: {p.path}: {p.message}" for p in problems[:SHOWN_PROBLEMS]]
    left = len(problems) - len(shown)
    return (*shown, f"and {left} more") if left else tuple(shown)
