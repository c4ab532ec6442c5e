"""How many breakers are open, as an alarm counts them: of instances that are there."""

from gateway.engine.tests.stage import ONE_ACTION, TOOLS, failed
from gateway.governance.parameters import Parameters
from gateway.governance.rules import BreakerRules
from gateway.runtime.target_views import TargetViews
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

RULES = Parameters(breaker=BreakerRules(failures_in_a_row=2))


def test_an_open_breaker_is_counted_until_its_instance_has_left() -> None:
    """For an hour it alarmed about an instance that no list showed any more."""

    async def story() -> None:
        house = House(parameters=RULES)
        views = TargetViews(
            house.admission,
            rules_for=house.parameters.rules_for,
            everybody=house.targets.here.values,
        )
        assert views.broken == 0
        house.targets.connection.lines["read"] = failed()
        for _ in range(2):
            await house.ended(await house.open(ONE_ACTION % "read"))
        assert views.broken == 1
        shown = views.of(house.targets.here.values(), at_ms=0)
        (broken,) = [one for one in shown if one.breaker != "closed"]
        house.targets.remove(broken.component_id)
        assert views.broken == 0
        house.targets.add(TOOLS, instance=broken.component_id)
        assert views.broken == 1, "it came back, and nobody knows better yet"

    run(story())
