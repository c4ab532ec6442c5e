"""A run takes away what it stored at somebody's gateway, and nothing else."""

import asyncio
from typing import Any

from conformance_tests.broken.gateway_process import running_gateway
from conformance_tests.runner.component_suite import Options
from conformance_tests.runner.gateway_peer import Call, GatewayPeer
from conformance_tests.runner.gateway_suite import run_gateway
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome

OWN = """\
workflow: kept
version: 1.0.0
steps:
  - {name: plan, role: plan}
output: plan.output
"""
SOME = ("GWY-010", "GWY-011", "WFL-001", "WFL-003")


def test_the_workflows_of_a_run_are_gone_after_it_and_those_of_others_are_not() -> None:
    async def story() -> list[Any]:
        async with running_gateway() as (process, fixtures):
            peer = GatewayPeer(process.http)
            token = fixtures.tokens.admin
            params = {"name": "kept", "version": "1.0.0"}
            put = Call(do="put_workflow", params=params, body=OWN.encode(), token=token)
            assert (await peer.call(put)).ok
            options = Options(targets=(process.http,), kind=Party.GATEWAY, fixtures=fixtures)
            run = await run_gateway(options.limited(SOME))
            outcomes = [one.outcome for one in run.results]
            assert outcomes.count(Outcome.PASSED) == len(outcomes) > 3
            listed = await peer.call(Call(do="list_workflows", token=token))
            await peer.close()
            assert listed.tree is not None
            rows: Any = listed.tree["workflows"]
            return [row["name"] for row in rows]

    assert asyncio.run(story()) == ["kept"]
