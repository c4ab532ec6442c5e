"""A person looks at what no domain knew, and nobody else waits for it."""

import asyncio
from collections.abc import Sequence

from acp_spec.model.semantics import HowMapped, MappedValue
from gateway.engine.tests.stage import ONE_ACTION
from gateway.governance.domains import Candidate, Domain
from gateway.runtime.semantics_review import TURN, SemanticsReview
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run
from gateway.runtime.unknown_values import Seen, UnknownValues
from gateway.telemetry.metrics import Metrics

DOMAIN = """
contract:
  semantics:
    domains: {intent: {values: [A, B]}}
    fields: [{in: input, at: /i, domain: intent}]
"""


def test_many_values_are_looked_at_in_turns_and_each_is_compared_once() -> None:
    """Six hundred of them held every session of the gateway for 0.7 seconds."""

    async def story() -> None:
        house, compared = House(), list[str]()
        name, _, version = (await house.learn(ONE_ACTION % "read" + DOMAIN)).partition("@")

        def nearest(domain: Domain, text: str) -> Sequence[Candidate]:
            compared.append(text)
            return (Candidate(value="B", confidence=0.9 if text == "w0" else 0.1),)

        unknown = UnknownValues(house.store, house.committer, clock=house.clock, metrics=Metrics())
        review = SemanticsReview(
            unknown=unknown, workflows=house.workflows, audit=house.audit, nearest=nearest
        )
        said = [f"w{number}" for number in range(3 * TURN)]
        where = Seen(tenant="t", workflow=f"{name}@{version}", field="input")
        for one in said:
            value = MappedValue(at="/i", domain="intent", from_=one, how=HowMapped.REFUSED)
            unknown.count(where, [value])
        looking = asyncio.create_task(review.of(name, tenant="t"))
        turns = 0
        while not looking.done():
            turns += 1
            await asyncio.sleep(0)
        page = looking.result()
        assert turns >= 3
        assert sorted(compared) == sorted(said)
        assert {one.unknown.value: one.means for one in page.values} == {
            one: "B" if one == "w0" else "" for one in said
        }
        assert {one.nearest[0].value for one in page.values} == {"B"}

    run(story())
