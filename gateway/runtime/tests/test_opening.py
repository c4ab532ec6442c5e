"""Openings: pins, lineage and policies are fixed then, and say what was meant."""

import pytest

from acp_spec.model.errors import AcpFailure
from acp_spec.model.ids import node_of, time_ms_of
from acp_spec.model.payload import payload
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, TOOLS, action, card
from gateway.runtime.principal import Principal
from gateway.runtime.tests.house import CARDS, House
from gateway.runtime.tests.virtual_time import run

NEWER = card("tools", action("read"), version="2.0.0")


def test_a_session_is_pinned_to_what_was_there_when_it_opened() -> None:
    async def story() -> None:
        house = House()
        one = await house.open(FOUR_CALLS)
        house.targets.add(NEWER)
        two = await house.open(FOUR_CALLS)
        pins = [house.state(session).opened.pins["action:read"] for session in (one, two)]
        assert pins == ["tools@1.0.0", "tools@2.0.0"]

    run(story())


def test_equal_circumstances_have_equal_lineage_and_any_difference_shows() -> None:
    async def story() -> None:
        house = House()

        async def digest(text: str = FOUR_CALLS, **fields: object) -> str:
            session = await house.open(text, **fields)  # type: ignore[arg-type]
            return house.state(session).opened.lineage_id.partition(".")[2]

        base = await digest()
        assert await digest() == base
        assert len(base) == 12
        changed = {
            "input": await digest(input=payload(b"1")),
            "workflow": await digest(ONE_ACTION % "read"),
            "policy": await digest(FOUR_CALLS + "recovery: {policy: backoff, base_ms: 7}\n"),
        }
        house.targets.add(NEWER)
        changed["version"] = await digest()
        assert len({base, *changed.values()}) == 5, changed

    run(story())


def test_the_tenant_comes_from_the_caller_and_the_id_names_time_and_gateway() -> None:
    async def story() -> None:
        house = House()
        who = Principal(tenant="acme", scopes=frozenset(("submit",)), subject="me")
        session = await house.open(ONE_ACTION % "read", principal=who, labels={"tenant": "bank"})
        opened = house.state(session).opened
        assert opened.tenant == "acme"
        assert (node_of(session), time_ms_of(session)) == (1, opened.at_ms)
        sent = house.targets.connection.sent[0].context
        assert (sent.tenant, sent.via, sent.labels) == ("acme", ("g",), {"tenant": "bank"})

    run(story())


def test_the_policy_of_the_opening_is_named_with_its_version_and_digest() -> None:
    async def story() -> None:
        house = House(cards=(*CARDS[:3], TOOLS))
        session = await house.open(ONE_ACTION % "read")
        policy = house.state(session).opened.policies["recovery"]
        assert policy.startswith("backoff@1.1.0#")

    run(story())


def test_an_input_that_breaks_the_contract_opens_nothing_and_leaves_its_key_free() -> None:
    async def story() -> None:
        house = House()
        text = ONE_ACTION % "read" + "contract: {input_schema: {required: [cents]}}\n"
        bad, good = payload(b'{"dollars":1}'), payload(b'{"cents":1}')
        with pytest.raises(AcpFailure) as refused:
            await house.open(text, input=bad, session_key="k")
        assert refused.value.error.reason == "CONTRACT_VIOLATION"
        assert house.driver.open_sessions == 0
        assert house.seen.events == []
        assert await house.open(text, input=good, session_key="k")

    run(story())
