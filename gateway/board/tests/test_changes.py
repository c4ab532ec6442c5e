"""What counts as a governed change, and what does not."""

import pytest

from gateway.board.changes import Release, activation_changes, component_change
from gateway.board.proposals import ChangeKind
from gateway.governance.sla import Sla


@pytest.mark.parametrize(
    ("name", "version", "kind"),
    [
        ("fees", "1.9.0", None),
        ("fees", "2.0.0", ChangeKind.MAJOR_VERSION),
        ("rates", "1.0.0", ChangeKind.NEW_COMPONENT),
    ],
)
def test_a_component_is_new_a_new_major_version_or_nothing_to_govern(
    name: str, version: str, kind: ChangeKind | None
) -> None:
    known = {"component:fees@1"}
    found = component_change(name, version, digest="d", known=known, names={"fees"})
    assert (found.kind if found else None) is kind


STRICT = Sla(component="fees", max_latency_ms=100)


def release(version: str, *sla: Sla) -> Release:
    return Release(name="hotline", version=version, sha256=version, sla=frozenset(sla))


def test_a_workflows_major_step_and_its_sla_are_two_changes() -> None:
    both = activation_changes(release("1.0.0"), release("2.0.0", STRICT), known=())
    assert [one.kind for one in both] == [ChangeKind.MAJOR_VERSION, ChangeKind.SLA_CHANGE]
    assert activation_changes(release("1.0.0"), release("1.1.0"), known=()) == ()
    assert activation_changes(None, release("1.0.0"), known=()) == ()


def test_going_back_to_what_was_active_is_always_free() -> None:
    before, after = release("2.0.0"), release("1.0.0")
    assert activation_changes(before, after, known={after.subject}) == ()
