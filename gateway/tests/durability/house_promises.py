"""What a gateway promises about components, workflows and tokens, as stories (see `promises`)."""

from gateway.assembly.building import Gateway
from gateway.tests.durability.bench import Bench
from gateway.tests.durability.promises import OF_SESSIONS, WORKFLOWS, Kept, Promise, first_of
from gateway.tests.e2e.stranger import READ, Stranger, card, serving


async def a_registration(bench: Bench) -> Kept:
    stranger = Stranger(card("stranger", "EXECUTOR", actions={"s": READ}), {})
    with serving(stranger):
        answer = await bench.client.post("/v1/components", json={"url": stranger.url})
        assert answer.status_code == 201, answer.text
        component_id = answer.json()["component_id"]

        async def kept(found: Gateway) -> bool:
            return component_id in _component_ids(found)

        return kept


async def a_drain(bench: Bench) -> Kept:
    stranger = Stranger(card("stranger", "EXECUTOR", actions={"s": READ}), {})
    with serving(stranger):
        answer = await bench.client.post("/v1/components", json={"url": stranger.url})
        component_id = answer.json()["component_id"]
        bench.store.sync()
        answer = await bench.client.post(f"/v1/components/{component_id}/drain", json={})
        assert answer.status_code == 200, answer.text

        async def kept(found: Gateway) -> bool:
            state = {one.component_id: one.state for one in found.services.components.list()}
            return state.get(component_id) == "DRAINING"

        return kept


async def a_removal(bench: Bench) -> Kept:
    stranger = Stranger(card("stranger", "EXECUTOR", actions={"s": READ}), {})
    with serving(stranger):
        answer = await bench.client.post("/v1/components", json={"url": stranger.url})
        component_id = answer.json()["component_id"]
        bench.store.sync()
        answer = await bench.client.delete(f"/v1/components/{component_id}")
        assert answer.status_code == 204, answer.text

        async def kept(found: Gateway) -> bool:
            return component_id not in _component_ids(found)

        return kept


async def a_workflow(bench: Bench) -> Kept:
    answer = await bench.put_workflow(WORKFLOWS.split("---")[0].replace("quick", "fresh"))
    assert answer.status_code == 201, answer.text

    async def kept(found: Gateway) -> bool:
        return any(one.name == "fresh" for one in found.services.workflows.versions())

    return kept


async def the_same_workflow_put_twice(bench: Bench) -> Kept:
    """The second is told that it is stored while the first may still be on its way to disk."""
    source = WORKFLOWS.split("---")[0].replace("quick", "twice")
    await first_of(bench.put_workflow(source), bench.put_workflow(source))

    async def kept(found: Gateway) -> bool:
        return any(one.name == "twice" for one in found.services.workflows.versions())

    return kept


async def an_activation(bench: Bench) -> Kept:
    source = WORKFLOWS.split("---")[0].replace("1.0.0", "1.1.0")
    path = "/v1/workflows/quick/versions/1.1.0"
    yaml = {"content-type": "application/yaml"}
    await bench.client.put(path, content=source, headers=yaml)
    bench.store.sync()
    answer = await bench.client.post(f"{path}/activate", json={})
    assert answer.status_code == 200, answer.text

    async def kept(found: Gateway) -> bool:
        active = [one.version for one in found.services.workflows.versions("quick") if one.active]
        return active == ["1.1.0"]

    return kept


async def a_token(bench: Bench) -> Kept:
    answer = await bench.client.post("/v1/tokens", json={"scopes": ["submit"]})
    assert answer.status_code == 201, answer.text
    token = answer.json()["token"]

    async def kept(found: Gateway) -> bool:
        return found.services.tokens.verify(token) is not None

    return kept


async def a_revoked_token(bench: Bench) -> Kept:
    made = (await bench.client.post("/v1/tokens", json={"scopes": ["submit"]})).json()
    bench.store.sync()
    answer = await bench.client.delete(f"/v1/tokens/{made['info']['token_id']}")
    assert answer.status_code == 204, answer.text

    async def kept(found: Gateway) -> bool:
        return found.services.tokens.verify(made["token"]) is None

    return kept


def _component_ids(gateway: Gateway) -> set[str]:
    return {one.component_id for one in gateway.services.components.list()}


OF_THE_HOUSE: tuple[Promise, ...] = (
    a_registration,
    a_drain,
    a_removal,
    a_workflow,
    the_same_workflow_put_twice,
    an_activation,
    a_token,
    a_revoked_token,
)
PROMISES = OF_SESSIONS + OF_THE_HOUSE
