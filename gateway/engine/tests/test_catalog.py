"""What is registered, as the engine sees it: newest first, active first, who offers what."""

import msgspec

from acp_spec.model.enums import Role
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.tests.stage import PLANNER, TOOLS, action, card, catalog_of

OLD = card("fees", action("quote"), version="1.9.0")
NEW = card("fees", action("quote"), action("tax"), version="1.10.0")
BETA = card("fees", action("quote"), version="2.0.0-beta.1")


def test_versions_are_ordered_as_versions_not_as_text() -> None:
    found = catalog_of(OLD, NEW).version("fees")
    assert found is not None
    assert found.pin == "fees@1.10.0"


def test_the_active_version_is_meant_if_it_is_in_range_else_the_newest_that_is() -> None:
    catalog = catalog_of(OLD, NEW, active={"fees": "1.9.0"})
    assert catalog.version("fees").pin == "fees@1.9.0"  # type: ignore[union-attr]
    assert catalog.version("fees", "^1.10").pin == "fees@1.10.0"  # type: ignore[union-attr]
    assert catalog.version("fees", "^3.0") is None
    assert catalog.version("nobody") is None


def test_a_pin_finds_that_very_version() -> None:
    catalog = catalog_of(OLD, NEW)
    assert catalog.exact("fees@1.9.0") is not None
    assert catalog.exact("fees@1.9") is None
    assert catalog.exact("nobody@1.0.0") is None


def test_a_version_that_takes_no_new_sessions_is_known_to_those_pinned_to_it() -> None:
    """A READ of a draining component became a WRITE that nobody had declared (simulated)."""
    catalog = Catalog((), leaving=(Offer(card=OLD, digest="d"),))
    pinned = catalog.exact("fees@1.9.0")
    assert pinned is not None
    assert pinned.card.action("quote") is not None
    assert catalog.version("fees") is None, "nobody else is sent there"
    assert catalog.names_with_action("quote") == ()


def test_roles_and_actions_are_found_by_name_and_sorted() -> None:
    catalog = catalog_of(TOOLS, PLANNER, NEW)
    assert catalog.names_with_role(Role.EXECUTOR) == ("fees", "tools")
    assert catalog.names_with_action("quote") == ("fees",)
    assert catalog.names_with_action("ghost") == ()
    assert catalog.actions() == tuple(sorted(catalog.actions()))


def test_the_actions_of_a_plan_are_those_of_the_pinned_versions() -> None:
    catalog = catalog_of(OLD, NEW)
    pins = {"action:quote": "fees@1.9.0", "action:tax": "fees@1.9.0", "step:x": "fees@1.10.0"}
    names = [entry["name"] for entry in msgspec.json.decode(catalog.actions_text(pins))]
    assert names == ["quote"], "the pinned version has no tax"
    both = catalog.actions_text({"action:quote": "fees@1.10.0", "action:tax": "fees@1.10.0"})
    assert [entry["name"] for entry in msgspec.json.decode(both)] == ["quote", "tax"]


def test_a_pre_release_is_not_meant_by_chance() -> None:
    found = catalog_of(NEW, BETA).version("fees")
    assert found is not None
    assert found.card.version == "1.10.0"
