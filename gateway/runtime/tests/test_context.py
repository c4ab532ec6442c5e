"""What a context says: LOOP for a session in a circle, and call-back tokens that fit one call."""

import msgspec
import pytest

from acp_spec.bindings.fields import MAX_VIA
from gateway.engine.events import Opened
from gateway.engine.tests.stage import ONE_ACTION
from gateway.runtime.context import ContextMaker
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

OTHERS = tuple(f"gateway-{number}" for number in range(MAX_VIA))
NEW_ID = "01HF7YAT00000G00000000000Z"


@pytest.mark.parametrize(
    ("via", "is_loop"),
    [((), False), (OTHERS[:-1], False), (OTHERS, True), (("a", "g"), True), (("g",), True)],
    ids=["none", "seven", "eight", "itself among others", "itself"],
)
def test_a_circle_of_gateways_ends(via: tuple[str, ...], is_loop: bool) -> None:
    async def story() -> None:
        house = House()
        pattern = await house.open(ONE_ACTION % "read")
        await house.ended(pattern)
        sent = len(house.targets.connection.sent)
        opened = house.journal(pattern)[0]
        assert isinstance(opened, Opened)
        workflow = house.workflows.resolve(opened.workflow)
        came = msgspec.structs.replace(opened, session_id=NEW_ID, via=via)
        house.driver.open(workflow, came)
        view = await house.ended(NEW_ID, LOCAL)
        if not is_loop:
            assert view.status.value == "SUCCEEDED"
            assert len(house.targets.connection.sent) == sent + 1
            return
        assert view.error is not None
        assert view.error.reason == "LOOP"
        assert len(house.targets.connection.sent) == sent

    run(story())


def test_a_call_back_token_opens_its_own_call_and_no_other_of_its_session() -> None:
    """A component that does two calls of one session cannot end one with the other's token."""
    mine, other = (ContextMaker(gateway_id="g", secret=secret) for secret in (b"s", b"t"))
    token = mine.token("session", "call")
    assert mine.session_of("call", token) == "session"
    assert mine.session_of("another-call", token) is None
    assert mine.session_of("call", token.replace("session", "another")) is None
    assert other.session_of("call", token) is None, "another gateway made it"
