"""Workflow versions: stored once, found by range, the same after a restart."""

import asyncio
import hashlib

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.board.changes import Release
from gateway.engine.catalog import Catalog
from gateway.governance.contract import NO_CONTRACT
from gateway.governance.rollout_spec import Kind, Subject
from gateway.runtime.clock import ManualClock
from gateway.runtime.permits import Permit
from gateway.runtime.principal import Principal
from gateway.runtime.rollout_versions import WorkflowVersions
from gateway.runtime.workflows import PARSED_MAX, SOURCE_BYTES_MAX, Workflows
from gateway.stores.durable import WriteThrough
from gateway.stores.errors import StoreError
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.tables import workflow_row


def source(version: str = "1.0.0", name: str = "hotline") -> bytes:
    return (
        f"workflow: {name}\nversion: {version}\nsteps:\n  - name: plan\n    role: plan\n"
        "output: plan.output\n"
    ).encode()


def on(store: MemoryStore) -> Workflows:
    return Workflows(store, WriteThrough(store), clock=ManualClock(), catalog=Catalog)


def put(workflows: Workflows, version: str, name: str = "hotline") -> None:
    asyncio.run(workflows.put(name, version, source=source(version, name)))


@pytest.fixture
def workflows() -> Workflows:
    """1.0.0 (active), 1.2.0, 2.0.0, 2.1.0-rc.1 of `hotline`."""
    kept = on(MemoryStore())
    for version in ("1.0.0", "1.2.0", "2.0.0", "2.1.0-rc.1"):
        put(kept, version)
    return kept


@pytest.mark.parametrize(
    ("reference", "version"),
    [
        ("hotline", "1.0.0"),
        ("hotline@^1", "1.0.0"),
        ("hotline@>=1.1", "2.0.0"),
        ("hotline@~1.2", "1.2.0"),
        ("hotline@2.0.0", "2.0.0"),
        ("hotline@2.1.0-rc.1", "2.1.0-rc.1"),
        ("hotline@*", "1.0.0"),
    ],
)
def test_a_reference_finds_the_active_version_or_the_newest_in_its_range(
    workflows: Workflows, reference: str, version: str
) -> None:
    found = workflows.resolve(reference)
    assert (found.name, found.version) == ("hotline", version)


@pytest.mark.parametrize(
    ("reference", "reason", "said"),
    [
        ("other", "NOT_FOUND", "no 'other'"),
        ("hotline@^3", "NOT_FOUND", "1.0.0, 1.2.0, 2.0.0"),
        ("hotline@banana", "INVALID_REQUEST", "not a range"),
        ("", "NOT_FOUND", "no ''"),
    ],
)
def test_a_reference_that_finds_nothing_says_what_there_is(
    workflows: Workflows, reference: str, reason: str, said: str
) -> None:
    with pytest.raises(AcpFailure, match=said) as caught:
        workflows.resolve(reference)
    assert caught.value.error.reason == reason


def test_everything_is_the_same_after_a_restart() -> None:
    store = MemoryStore()
    before = on(store)
    for version in ("1.0.0", "1.1.0"):
        put(before, version)
    asyncio.run(before.activate("hotline", "1.1.0"))
    after = on(store)
    assert after.versions() == before.versions()
    assert after.resolve("hotline") == before.resolve("hotline")
    digest = before.resolve("hotline").source_digest
    assert after.by_digest(digest) == before.by_digest(digest)
    assert after.stored("hotline", "1.0.0").source == source().decode()


def test_a_version_never_changes_and_the_same_bytes_are_welcome_again() -> None:
    kept = on(MemoryStore())
    _, first = asyncio.run(kept.put("hotline", "1.0.0", source=source()))
    _, again = asyncio.run(kept.put("hotline", "1.0.0", source=source()))
    assert (first, again) == (True, False)
    with pytest.raises(AcpFailure, match="raise the version"):
        asyncio.run(kept.put("hotline", "1.0.0", source=source() + b"\n"))


def test_two_puts_of_one_version_at_once_store_one() -> None:
    kept = on(MemoryStore())

    async def both() -> list[bool]:
        puts = (kept.put("hotline", "1.0.0", source=source()) for _ in range(2))
        return [created for _, created in await asyncio.gather(*puts)]

    assert sorted(asyncio.run(both())) == [False, True]


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    kept = on(MemoryStore())
    large = source() + b"#" * SOURCE_BYTES_MAX
    assert not kept.validate(large).valid
    with pytest.raises(AcpFailure, match="at most"):
        asyncio.run(kept.put("hotline", "1.0.0", source=large))


def test_nothing_is_stored_by_validating() -> None:
    kept = on(MemoryStore())
    assert kept.validate(source()).valid
    assert kept.versions() == ()


def test_parsed_workflows_are_kept_within_a_bound() -> None:
    kept = on(MemoryStore())
    for number in range(PARSED_MAX + 5):
        put(kept, "1.0.0", f"w{number}")
    assert len(kept._parsed) == PARSED_MAX
    assert kept.resolve("w0").name == "w0"


def test_activating_what_is_not_stored_is_not_found(workflows: Workflows) -> None:
    with pytest.raises(AcpFailure, match="no version '9.0.0'"):
        asyncio.run(workflows.activate("hotline", "9.0.0"))
    assert workflows.by_digest("0" * 64) is None


def test_a_contract_of_an_older_kind_is_ignored_loudly_and_its_workflow_still_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    put(on(store), "1.0.0")
    old = source() + b"contract: {max: 0.10}\n"
    row = {"source": old.decode(), "sha256": hashlib.sha256(old).hexdigest(), "stored_at_ms": 1}
    key = workflow_row("hotline", "1.0.0")
    WriteThrough(store).put(Table.WORKFLOW, key, msgspec.json.encode(row))
    assert on(store).resolve("hotline").contract == NO_CONTRACT
    assert "contract_ignored" in caplog.text


class ReadsCounted(MemoryStore):
    reads = 0

    def get(self, table: Table, key: bytes) -> bytes | None:
        self.reads += 1
        return super().get(table, key)


def test_who_names_a_component_is_known_without_reading_every_file_again() -> None:
    store = ReadsCounted()
    kept = on(store)
    for number in range(PARSED_MAX + 5):
        put(kept, "1.0.0", f"w{number}")
    store.reads = 0
    assert kept.naming("nobody") == ()
    assert store.reads == 0


def test_a_rollout_may_ask_beforehand_whether_a_version_may_become_active(
    workflows: Workflows,
) -> None:
    asked: list[tuple[str, str]] = []

    def refuse(before: Release | None, after: Release, *, principal: Principal) -> Permit:
        assert before is not None
        asked.append((before.subject, after.subject))
        raise AcpFailure(error(Reason.PERMISSION_DENIED, "needs an approved proposal"))

    workflows.permit = refuse
    subject = Subject(kind=Kind.WORKFLOW, name="hotline", candidate="2.0.0")
    with pytest.raises(AcpFailure, match="approved proposal"):
        WorkflowVersions(workflows).permitted(subject)
    assert asked == [("workflow:hotline@1.0.0", "workflow:hotline@2.0.0")]
    assert workflows.resolve("hotline").version == "1.0.0"


def delete(workflows: Workflows, version: str, name: str = "hotline") -> None:
    asyncio.run(workflows.delete(name, version))


def names(workflows: Workflows) -> list[str]:
    return [f"{one.name}@{one.version}" for one in workflows.versions()]


def test_a_deleted_version_is_for_nobody_to_use_and_its_sessions_still_find_it() -> None:
    store = MemoryStore()
    for version in ("1.0.0", "1.2.0"):
        put(on(store), version)
    kept = on(store)
    digest = kept.exact("hotline", "1.2.0").source_digest
    delete(kept, "1.2.0")
    for workflows in (kept, on(store)):  # and after a restart
        assert names(workflows) == ["hotline@1.0.0"]
        with pytest.raises(AcpFailure, match="NOT_FOUND"):
            workflows.resolve("hotline@1.2.0")
        with pytest.raises(AcpFailure, match="NOT_FOUND"):
            workflows.exact("hotline", "1.2.0")
        with pytest.raises(AcpFailure, match="NOT_FOUND"):
            delete(workflows, "1.2.0")
        found = workflows.by_digest(digest)
        assert found is not None
        assert (found.name, found.version) == ("hotline", "1.2.0")


def test_the_same_bytes_bring_a_deleted_version_back_and_no_others_take_its_name() -> None:
    store = MemoryStore()
    put(on(store), "1.0.0")
    delete(on(store), "1.0.0")
    with pytest.raises(AcpFailure, match="was stored with other bytes"):
        asyncio.run(on(store).put("hotline", "1.0.0", source=source() + b"# changed\n"))
    view, is_new = asyncio.run(on(store).put("hotline", "1.0.0", source=source()))
    assert (view.active, is_new) == (True, True)
    assert on(store).resolve("hotline").version == "1.0.0"


def test_the_active_version_is_deleted_last(workflows: Workflows) -> None:
    with pytest.raises(AcpFailure, match="activate another") as told:
        delete(workflows, "1.0.0")
    failure = told.value.error
    assert (failure.code.value, failure.reason) == ("FAILED_PRECONDITION", "WORKFLOW_IN_USE")
    for version in ("1.2.0", "2.0.0", "2.1.0-rc.1", "1.0.0"):
        delete(workflows, version)
    assert (workflows.versions(), workflows.active(), workflows.active_digests()) == ((), (), ())
    assert workflows.naming("hotline-planner") == ()
    with pytest.raises(AcpFailure, match="NOT_FOUND"):
        workflows.versions("hotline")
    with pytest.raises(AcpFailure, match="NOT_FOUND"):
        workflows.resolve("hotline")


def test_nothing_becomes_active_because_the_versions_before_it_were_deleted() -> None:
    """Else whoever deletes first activates a new major version past the board."""
    store = MemoryStore()
    put(on(store), "1.0.0")
    delete(on(store), "1.0.0")
    put(on(store), "2.0.0")
    kept = on(store)
    assert [one.active for one in kept.versions()] == [False]
    with pytest.raises(AcpFailure, match="no version of 'hotline' is active any more"):
        kept.resolve("hotline")
    asked: list[tuple[str, str]] = []

    def permit(before: Release | None, after: Release, *, principal: Principal) -> Permit:
        asked.append((before.version if before else "", after.version))
        return Permit(lambda: None)

    kept.permit = permit
    asyncio.run(kept.activate("hotline", "2.0.0"))
    assert asked == [("1.0.0", "2.0.0")]
    assert kept.resolve("hotline").version == "2.0.0"


def test_what_is_in_use_is_not_deleted_and_says_by_whom(workflows: Workflows) -> None:
    workflows.in_use = lambda name, version: f"3 sessions run {name} {version}"
    with pytest.raises(AcpFailure, match="cannot be deleted now: 3 sessions run hotline 2.0.0"):
        delete(workflows, "2.0.0")
    assert "hotline@2.0.0" in names(workflows)


def test_who_deleted_what_is_told_once_it_has_happened(workflows: Workflows) -> None:
    told: list[str] = []
    workflows.dropped = lambda release, principal: told.append(release.version)
    delete(workflows, "2.0.0")
    assert told == ["2.0.0"]


class Failing(MemoryStore):
    """A disk that can be synced only so often."""

    syncs = 3

    def sync(self) -> None:
        self.syncs -= 1
        if self.syncs < 0:
            raise StoreError("no space left")


def test_a_deletion_that_did_not_reach_the_disk_is_taken_back() -> None:
    store = Failing()
    kept = on(store)
    put(kept, "1.0.0")
    store.syncs = 1  # the one before it
    with pytest.raises(StoreError):
        delete(kept, "1.0.0")
    assert kept.resolve("hotline").version == "1.0.0"
