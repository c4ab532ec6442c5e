"""Which governed change an act is: pure, from what is in service and what is wanted.

`known` are the subjects that are in service or once were approved: what is known needs no second
proposal, so that a component may restart and a workflow may always go back to what it was.
"""

from collections.abc import Container

import msgspec

from acp_spec.model import semver
from gateway.board.proposals import Change, ChangeKind
from gateway.governance.sla import Sla


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One stored version of a workflow, as far as changes are concerned.

    `sla`: the demands of its contract, in any order.
    """

    name: str
    version: str
    sha256: str
    sla: frozenset[Sla] = frozenset()

    @property
    def subject(self) -> str:
        return f"workflow:{self.name}@{self.version}"


def component_subject(name: str, version: str) -> str:
    """`component:name@major`: minor releases of a component in service are no governed change."""
    return f"component:{name}@{semver.parse(version).major}"


def component_change(
    name: str, version: str, *, digest: str, known: Container[str], names: Container[str]
) -> Change | None:
    """What registering this component is: new, a new major version, or (None) nothing to govern.

    `names`: the names of all known components.
    """
    subject = component_subject(name, version)
    if subject in known:
        return None
    kind = ChangeKind.MAJOR_VERSION if name in names else ChangeKind.NEW_COMPONENT
    return Change(kind=kind, subject=subject, digest=digest)


def activation_changes(
    before: Release | None, after: Release, *, known: Container[str]
) -> tuple[Change, ...]:
    """What making `after` the active version is; going back to a known version is nothing new."""
    if before is None or after.subject in known:
        return ()
    kinds = []
    if semver.parse(before.version).major != semver.parse(after.version).major:
        kinds.append(ChangeKind.MAJOR_VERSION)
    if before.sla != after.sla:
        kinds.append(ChangeKind.SLA_CHANGE)
    return tuple(Change(kind=kind, subject=after.subject, digest=after.sha256) for kind in kinds)


def retirement(name: str, version: str) -> Change:
    return Change(kind=ChangeKind.RETIREMENT, subject=component_subject(name, version))
