"""What counts as a governed change, and what does not."""

import pytest

from gateway.board.changes import Release, activation_changes, component_change, sla_text
from gateway.board.proposals import ChangeKind


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


def release(version: str, sla: bytes = b"") -> Release:
    return Release(name="hotline", version=version, sha256=version, sla=sla)


def test_a_workflows_major_step_and_its_sla_are_two_changes() -> None:
    both = activation_changes(release("1.0.0"), release("2.0.0", b"{}"), known=())
    assert [one.kind for one in both] == [ChangeKind.MAJOR_VERSION, ChangeKind.SLA_CHANGE]
    assert activation_changes(release("1.0.0"), release("1.1.0"), known=()) == ()
    assert activation_changes(None, release("1.0.0"), known=()) == ()


def test_going_back_to_what_was_active_is_always_free() -> None:
    before, after = release("2.0.0"), release("1.0.0")
    assert activation_changes(before, after, known={after.subject}) == ()


def test_an_sla_is_the_same_whatever_its_order_or_white_space() -> None:
    one = sla_text(b'{"sla": {"a": {"max_latency_ms": 5, "min_success_rate": 0.9}}}')
    two = sla_text(b'{"sla":{"a":{"min_success_rate":0.90,"max_latency_ms":5}},"x":1}')
    assert one == two != b""
    assert sla_text(b"") == sla_text(b'{"plan": {}}') == b""
