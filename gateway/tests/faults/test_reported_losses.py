"""Reported faults that take a gateway of their own: lost work, a stalled disk, mixed-up clients."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import httpx

from gateway.cli.offline import offline_tokens
from gateway.runtime.tokens import TokenRequest
from gateway.stores.forgetful import ForgetfulStore
from gateway.tests.durability.bench import Bench, run, serving
from gateway.tests.durability.promises import prepare
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card
from gateway.tests.e2e.stranger import serving as serving_stranger
from gateway.tests.served import Served

OPEN_MAX = 40
GIVES_UP_S, TOLD_WITHIN_S = 3.0, 20.0
WORKFLOW = """
workflow: looked
version: 1.0.0
steps: [{name: look, role: execute, component: looker, action: look}]
output: look.output
"""


class StalledDisk(ForgetfulStore):
    """While `gate` is closed a sync does not return."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def sync(self) -> None:
        assert self.gate.wait(30)
        super().sync()


def test_queues_do_not_grow_without_bound_when_the_disk_stalls(tmp_path: Path) -> None:
    """So many sessions may wait for the disk, ended or not; the next are refused at once."""

    async def story() -> None:
        disk = StalledDisk()
        async with serving(disk, tmp_path, max_open_sessions=OPEN_MAX) as bench:
            await prepare(bench)
            disk.gate.clear()
            refused = 0
            for patience_s in (GIVES_UP_S, *[TOLD_WITHIN_S] * 3):  # give up, and come back
                asking = [impatient(bench, patience_s) for _ in range(OPEN_MAX)]
                answers = await asyncio.gather(*asking)
                refused += answers.count("OVERLOADED")
                assert set(answers) <= {"OVERLOADED", "gave up"}
            assert refused == 3 * OPEN_MAX
            assert bench.gateway.driver.open_sessions == OPEN_MAX
            assert (await bench.client.get("/healthz")).status_code == 200
            disk.gate.set()
            assert (await until_taken(bench))["status"] == "SUCCEEDED"
            assert bench.gateway.driver.open_sessions == 0

    run(story)


async def impatient(bench: Bench, patience_s: float) -> str:
    """One that waits for the disk gives up: a refusal comes far sooner under any load."""
    body = {"workflow": "quick"}
    try:
        answer = await bench.client.post("/v1/sessions", json=body, timeout=patience_s)
    except httpx.TimeoutException:
        return "gave up"
    reason: str = answer.json()["error"]["reason"]
    assert answer.json()["error"]["retry_after_ms"] > 0
    return reason


async def until_taken(bench: Bench) -> dict[str, str]:
    """What a client does that was told to come again: the first session that is taken."""
    while True:
        headers = {"prefer": "wait=10"}
        body = {"workflow": "quick"}
        answer = await bench.client.post("/v1/sessions", json=body, headers=headers)
        if answer.status_code == 200:
            found: dict[str, str] = answer.json()
            return found


def test_accepted_work_is_not_lost_before_its_first_checkpoint(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Killed with the 201 hardly read, and no step begun: the session is there, and ends."""
    looker = Stranger(
        card("looker", "EXECUTOR", actions={"look": READ}), {"execute": lambda body: '{"output":1}'}
    )
    with serving_stranger(looker):
        gateway = serve()
        with Client(gateway.url) as client:
            client.register(looker.url)
            client.put_workflow(WORKFLOW)
            accepted = [client.open("looked") for _ in range(3)]
        gateway.kill()
        with Client(serve().url) as client:
            for session_id in accepted:
                view = client.ended(session_id)
                assert (view["status"], view["output"]) == ("SUCCEEDED", 1)


def test_one_clients_state_never_leaks_into_anothers_on_one_connection(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Two tenants take turns on one connection, with the same keys and names."""
    data_dir = tmp_path / "data"
    tokens = {}
    with offline_tokens(data_dir) as place:
        for tenant in ("one", "two"):
            request = TokenRequest(scopes=("submit", "annotate", "operate"), tenant=tenant)
            tokens[tenant] = place.create_token(request).token
    gateway = serve(data_dir=data_dir, environ={"ACP_AUTH_MODE": "required"})
    with httpx.Client(base_url=gateway.url, trust_env=False, timeout=40) as both:
        yaml = {"content-type": "application/yaml"} | auth(tokens["one"])
        path = "/v1/workflows/looked/versions/1.0.0"
        assert both.put(path, content=WORKFLOW, headers=yaml).status_code == 201
        mine: dict[str, str] = {}
        for turn in range(6):
            tenant = ("one", "two")[turn % 2]
            body = {"workflow": "looked", "mode": "MANUAL", "session_key": "same", "input": tenant}
            answer = both.post("/v1/sessions", json=body, headers=auth(tokens[tenant]))
            assert answer.status_code == (201 if turn < 2 else 200), answer.text
            session_id = answer.json()["session_id"]
            assert mine.setdefault(tenant, session_id) == session_id
        assert len(set(mine.values())) == 2
        for tenant, foreign in (("one", mine["two"]), ("two", mine["one"])):
            headers = auth(tokens[tenant])
            for where in ("", "/trajectory", "/events"):
                assert (
                    both.get(f"/v1/sessions/{foreign}{where}", headers=headers).status_code == 404
                )
            listed = both.get("/v1/sessions", headers=headers).json()["sessions"]
            assert [one["session_id"] for one in listed] == [mine[tenant]]
        assert both.get("/v1/sessions").status_code == 401, "nor does a token stay behind"


def auth(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
