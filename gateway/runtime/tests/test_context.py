"""A session that came through too many gateways, or through this one, sends nothing: LOOP."""

import msgspec
import pytest

from acp_spec.bindings.fields import MAX_VIA
from gateway.engine.events import Opened
from gateway.engine.tests.stage import ONE_ACTION
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
