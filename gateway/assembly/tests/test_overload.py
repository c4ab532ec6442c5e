"""What the settings say of queues reaches those who stand in them."""

from acp_spec.model.enums import StepType
from gateway.assembly import overload
from gateway.config.settings import Settings
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run


def test_the_priority_of_each_step_type_is_the_one_of_its_own_queue() -> None:
    async def story() -> None:
        queues = {
            name: {"concurrency": 9, "max_queued": 9, "priority": level}
            for name, level in (("plan", 3), ("tool", 0), ("llm", -2))
        }
        settings = Settings.model_validate({"limits": {"queues": queues}})
        house = House()
        overload.listen(settings, admitting=house.admitting, driver=house.driver)
        assert house.admitting.step_priority == {
            StepType.PLAN: 3,
            StepType.TOOL: 0,
            StepType.LLM: -2,
        }

    run(story())
