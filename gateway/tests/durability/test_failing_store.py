"""The k-th write or sync of a session fails, for every k: told clearly, and nothing told is lost.

A disk that failed once is not trusted again: from then on nothing is acknowledged, readiness says
why, and the way out is a restart on what is on disk.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_spec.model.session import SessionView
from gateway.assembly.building import Gateway
from gateway.engine.events import AttemptStarted
from gateway.runtime.connection import Outgoing
from gateway.runtime.restart import open_sessions, resume_all
from gateway.stores.forgetful import ForgetfulStore
from gateway.tests.durability.bench import Bench, events_in, reopened, run, serving
from gateway.tests.durability.promises import prepare, view_of
from gateway.tests.e2e.stranger import READ, Stranger, card
from gateway.tests.e2e.stranger import serving as serving_stranger

TERMINAL = ("SUCCEEDED", "FAILED")
EACH_REFUSED_FIRST = {"registration", "workflow", "token", "open", "feedback"}
TOLD_WITHIN_S = 25.0
"""Less than the 30 s that a client would wait for an end."""
ROUNDS = 3
"""A request of one write can be stepped over, when a write takes more rows in one run than in the
next; not in every round."""


@dataclass
class Told:
    """What the clients of one gateway were told, and what was refused."""

    answers: dict[str, Any] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    too_early: list[str] = field(default_factory=list)

    async def ask(self, name: str, request: Awaitable[httpx.Response]) -> Any:
        """Keep a good answer under its name; a bad one must say that it was the gateway's store."""
        answer = await request
        if answer.status_code < 300:
            self.answers[name] = answer.json() if answer.content else {}
            return self.answers[name]
        failure = answer.json()["error"]
        assert answer.status_code == 503, answer.text
        assert (failure["reason"], failure["boundary"]) == ("UNAVAILABLE", "GATEWAY")
        assert "store" in failure["message"]
        self.refused.append(name)
        return None


async def use(bench: Bench, told: Told, *, stranger: str) -> None:
    """Everything a client asks for in the life of a session, whatever was refused before."""
    client = bench.client

    def look(outgoing: Outgoing) -> None:
        """No call that may do something leaves without its start on disk."""
        context = outgoing.context
        events = events_in(bench.store.durable(), context.session_id)
        started = {event.call_id for event in events if isinstance(event, AttemptStarted)}
        if context.step in ("keyed", "once", "remember") and context.call_id not in started:
            told.too_early.append(context.step)

    bench.witness.look = look
    await told.ask("registration", client.post("/v1/components", json={"url": stranger}))
    await told.ask("workflow", bench.put_workflow(LATER))
    await told.ask("token", client.post("/v1/tokens", json={"scopes": ["submit"]}))
    body = {"workflow": "all_roles", "session_key": "k"}
    opened = await told.ask("open", client.post("/v1/sessions", json=body))
    wait = {"prefer": "wait=10"}
    ended = await told.ask("end", client.post("/v1/sessions", json=body, headers=wait))
    if opened is None:
        assert ended is None, "the same session was promised after it was refused"
        return
    path = f"/v1/sessions/{opened['session_id']}"
    rating = {"kind": "RATING", "score": 1, "feedback_id": "f"}
    await told.ask("feedback", client.post(f"{path}/feedback", json=rating))
    await told.ask("deletion", client.delete(path)) if ended else None


async def use_until_refused(bench: Bench, told: Told) -> None:
    """Ask on until the failing call is reached.

    How many rows share one write is a matter of the moment: a story may come to fewer writes than
    the one that was counted.
    """
    while not told.refused:
        await told.ask("more", bench.client.post("/v1/tokens", json={"scopes": ["submit"]}))


LATER = """
workflow: later
version: 1.0.0
steps: [{name: look, role: execute, component: witness, action: look}]
output: look.output
"""


async def check_told(told: Told, found: Gateway) -> None:
    """All that was told is so, in a gateway that finds what is on disk."""
    answers = told.answers
    known = {one.component_id for one in found.services.components.list()}
    if "registration" in answers:
        assert answers["registration"]["component_id"] in known
    if "workflow" in answers:
        assert [one.name for one in found.services.workflows.versions("later")] == ["later"]
    if "token" in answers:
        assert found.services.tokens.verify(answers["token"]["token"]) is not None
    if "open" not in answers:
        return
    view = await view_of(found, answers["open"]["session_id"])
    assert isinstance(view, SessionView)
    if "end" in answers:
        assert view.status.value == answers["end"]["status"]
    deletion_begun = "deletion" in (*answers, *told.refused)  # it may have come as far as the key
    if "feedback" in answers and not deletion_begun:
        assert "FeedbackGiven" in names_in(found, view.session_id)


def names_in(gateway: Gateway, session_id: str) -> list[str]:
    return [type(event).__name__ for event in events_in(gateway.store, session_id)]


async def check_failure_is_told(bench: Bench) -> None:
    """Not ready, with the reason and what to do; alive; and nothing refused is shown as there."""
    ready = await bench.client.get("/readyz")
    assert ready.status_code == 503, ready.text
    assert "as the test asked" in ready.text
    assert "restart" in ready.text
    assert (await bench.client.get("/healthz")).status_code == 200
    opening = await bench.client.post("/v1/sessions", json={"workflow": "quick"})
    assert opening.status_code == 503, opening.text


async def check_nothing_refused_shows(bench: Bench, told: Told) -> None:
    workflows = (await bench.client.get("/v1/workflows")).json()["workflows"]
    names = [one["name"] for one in workflows]
    assert ("later" in names) is ("workflow" in told.answers)
    components = (await bench.client.get("/v1/components")).json()["components"]
    there = "newcomer" in [one["card"]["name"] for one in components]
    assert there is ("registration" in told.answers)


async def check_way_out(told: Told, store: ForgetfulStore, folder: Path) -> None:
    """After a restart the session goes on to its end, and new ones run."""
    async with serving(store, folder) as again:
        await again.gateway.erasing.finish()
        await resume_all(again.gateway.driver, open_sessions(store))
        if "open" in told.answers and "deletion" not in told.answers:
            path = f"/v1/sessions/{told.answers['open']['session_id']}"
            async with again.client.stream("GET", f"{path}/events") as stream:
                _ = [line async for line in stream.aiter_lines()]
            assert (await again.client.get(path)).json()["status"] in TERMINAL
        assert (await again.open("quick", wait=10))["status"] == "SUCCEEDED"


def fail_at(folder: Path, **which: int) -> tuple[Told, int, int]:
    """One story with that write or sync failing; how many writes and syncs it came to."""

    async def story() -> tuple[Told, int, int]:
        told = Told()
        stranger = Stranger(card("newcomer", "EXECUTOR", actions={"n": READ}), {})
        with serving_stranger(stranger):
            async with serving(ForgetfulStore(), folder / "one") as bench:
                await prepare(bench)
                writes, syncs = bench.store.writes, bench.store.syncs
                bench.store.fail_from_now(**which)
                await use(bench, told, stranger=stranger.url)
                counts = bench.store.writes - writes, bench.store.syncs - syncs
                if which:
                    await use_until_refused(bench, told)
                    await check_failure_is_told(bench)
                    await check_nothing_refused_shows(bench, told)
                found = bench.store.durable()
            assert told.too_early == []
            await check_told(told, reopened(found.durable(), folder / "two"))
            await check_way_out(told, found, folder / "three")
        return told, *counts

    return run(story)


@pytest.mark.parametrize("what", ["write", "sync"])
def test_whichever_call_of_the_store_fails_nothing_told_is_lost(what: str, tmp_path: Path) -> None:
    whole, writes, syncs = fail_at(tmp_path / "whole")
    assert whole.refused == []
    calls = writes if what == "write" else syncs
    assert calls >= 6
    refused_first: set[str] = set()
    for round_of_all in range(ROUNDS):
        for number in range(1, calls + 1):
            told, _, _ = fail_at(tmp_path / f"{round_of_all}-{number}", **{what: number})
            refused_first |= set(told.refused[:1])
        if refused_first >= EACH_REFUSED_FIRST:
            return
    assert refused_first >= EACH_REFUSED_FIRST


def test_whoever_waits_is_told_at_once_when_the_store_fails(tmp_path: Path) -> None:
    """A client that waits 30 s for an end, and one that follows the events, hear it now."""

    async def story() -> None:
        async with serving(ForgetfulStore(), tmp_path) as bench, asyncio.timeout(TOLD_WITHIN_S):
            await prepare(bench)
            opened = await bench.open("slow")
            path = f"/v1/sessions/{opened['session_id']}"
            followed = asyncio.Event()
            follower = asyncio.ensure_future(follow(bench, path, followed=followed))
            wait = {"prefer": "wait=30"}
            body = {"workflow": "slow"}
            waiter = asyncio.ensure_future(
                bench.client.post("/v1/sessions", json=body, headers=wait)
            )
            await followed.wait()
            while len(bench.witness.sinks) < 2:
                await bench.client.get("/healthz")
            bench.store.fail_from_now(write=1)
            assert (await bench.client.post(f"{path}/cancel", json={})).status_code == 503
            assert (await waiter).status_code == 503
            assert '"reason":"UNAVAILABLE"' in (await follower)[-1]
            assert (await bench.client.get(path)).json()["status"] == "RUNNING"

    run(story)


async def follow(bench: Bench, path: str, *, followed: asyncio.Event) -> list[str]:
    """The data lines of the session's event stream, to its end."""
    lines: list[str] = []
    async with bench.client.stream("GET", f"{path}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                lines.append(line)
                followed.set()
    return lines


def test_an_end_that_did_not_reach_the_disk_is_never_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(ForgetfulStore(), tmp_path) as bench:
            await prepare(bench)
            ended = await bench.open("quick", wait=10)
            opened = await bench.open("quick", mode="MANUAL")
            path = f"/v1/sessions/{opened['session_id']}"
            bench.store.fail_from_now(write=1)
            finish = await bench.client.post(f"{path}/finish", json={"output": 1})
            assert finish.status_code == 503
            for where in ("", "/trajectory"):
                assert (await bench.client.get(path + where)).status_code == 503
                known = await bench.client.get(f"/v1/sessions/{ended['session_id']}{where}")
                assert known.json()["status"] == "SUCCEEDED", "what is on disk can be read"

    run(story)
