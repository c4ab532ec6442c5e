"""Every promise a gateway makes to the outside, as a story: ask for it, and how it is found again.

A promise is a function that asks a running gateway and returns once the answer's bytes are there.
What it returns is asked of a gateway that finds the disk as it was at that very moment: is it so?
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import SessionView
from gateway.assembly.building import Gateway
from gateway.engine.events import AttemptStarted, SessionEnded
from gateway.runtime.connection import Outgoing
from gateway.runtime.live import Erased
from gateway.runtime.principal import LOCAL
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.ports import Table
from gateway.stores.tables import erasing_row, session_row
from gateway.tests.durability.bench import Bench, events_in

Kept = Callable[[Gateway], Awaitable[bool]]
Promise = Callable[[Bench], Awaitable[Kept]]

WORKFLOWS = """
workflow: quick
version: 1.0.0
steps: [{name: look, role: execute, component: witness, action: look}]
output: look.output
---
workflow: slow
version: 1.0.0
steps: [{name: wait, role: execute, component: witness, action: hang}]
output: wait.output
---
workflow: operated
version: 1.0.0
steps: [{name: work, role: execute, component: witness, action: long}]
output: work.output
---
workflow: many_looks
version: 1.0.0
steps:
LOOKS
output: l9.output
---
workflow: all_roles
version: 1.0.0
steps:
  - {name: plan, role: plan, component: witness}
  - {name: keyed, role: execute, component: witness, action: keyed}
  - {name: once, role: execute, component: witness, action: once}
  - {name: remember, role: observe, component: witness}
  - {name: judge, role: reflect, component: witness}
output: judge.output
""".replace(
    "LOOKS",
    "\n".join(
        f"  - {{name: l{n}, role: execute, component: witness, action: look}}" for n in range(10)
    ),
)


async def prepare(bench: Bench) -> None:
    """What must be there before a promise is asked for; it is on disk, so that only that counts."""
    for source in WORKFLOWS.split("---"):
        answer = await bench.put_workflow(source)
        assert answer.status_code == 201, answer.text
    bench.store.sync()


async def view_of(gateway: Gateway, session_id: str) -> SessionView | None:
    try:
        return await gateway.services.sessions.view(session_id, LOCAL)
    except AcpFailure:
        return None


# ---- sessions ------------------------------------------------------------------------------------


async def an_opened_session(bench: Bench) -> Kept:
    opened = await bench.open("slow", session_key="k")

    async def kept(found: Gateway) -> bool:
        view = await view_of(found, opened["session_id"])
        return view is not None and view.lineage_id == opened["lineage_id"]

    return kept


async def the_same_session_by_its_key(bench: Bench) -> Kept:
    """The second asker is told of a session whose opening may still be on its way to disk."""
    body = {"workflow": "slow", "session_key": "twice"}
    first = bench.client.post("/v1/sessions", json=body)
    second = bench.client.post("/v1/sessions", json=body)
    answer = await first_of(first, second)

    async def kept(found: Gateway) -> bool:
        return await view_of(found, answer["session_id"]) is not None

    return kept


async def an_end_that_was_waited_for(bench: Bench) -> Kept:
    ended = await bench.open("quick", wait=10)
    assert ended["status"] == "SUCCEEDED"
    return _ended(ended["session_id"])


async def an_end_that_was_asked_for_again(bench: Bench) -> Kept:
    """By its key, by a client that came when the end was known and not yet on disk."""
    await bench.open("quick", session_key="again")
    ended = await bench.open("quick", wait=10, session_key="again")
    assert ended["status"] == "SUCCEEDED"
    return _ended(ended["session_id"])


async def an_end_that_was_looked_up(bench: Bench) -> Kept:
    opened = await bench.open("quick")
    while True:
        answer = await bench.client.get(f"/v1/sessions/{opened['session_id']}")
        if answer.json()["status"] == "SUCCEEDED":
            return _ended(opened["session_id"])


async def an_end_in_a_trajectory(bench: Bench) -> Kept:
    opened = await bench.open("quick")
    while True:
        answer = await bench.client.get(f"/v1/sessions/{opened['session_id']}/trajectory")
        if answer.json()["status"] == "SUCCEEDED":
            return _ended(opened["session_id"])


async def an_end_in_a_list(bench: Bench) -> Kept:
    opened = await bench.open("quick")
    while True:
        answer = await bench.client.get("/v1/sessions?status=SUCCEEDED")
        if opened["session_id"] in answer.text:
            return _ended(opened["session_id"])


async def an_event_of_a_stream(bench: Bench) -> Kept:
    """Each event that came out was on disk at that moment; the first that was not is told."""
    opened = await bench.open("many_looks")
    session_id, missing = opened["session_id"], 0
    async with bench.client.stream("GET", f"/v1/sessions/{session_id}/events") as stream:
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id" and not missing:
                on_disk = len(events_in(bench.store.durable(), session_id))
                missing = int(value) if int(value) > on_disk else 0

    async def kept(found: Gateway) -> bool:
        return not missing

    return kept


async def a_cancel(bench: Bench) -> Kept:
    opened = await bench.open("slow")
    bench.store.sync()
    answer = await bench.client.post(f"/v1/sessions/{opened['session_id']}/cancel", json={})
    assert answer.status_code == 202, answer.text
    return _has_event(bench, opened["session_id"], "CancelRequested")


async def feedback(bench: Bench) -> Kept:
    ended = await bench.open("quick", wait=10)
    bench.store.sync()
    answer = await bench.client.post(
        f"/v1/sessions/{ended['session_id']}/feedback",
        json={"kind": "RATING", "score": 0.5, "feedback_id": "f1"},
    )
    assert answer.status_code == 201, answer.text

    async def kept(found: Gateway) -> bool:
        text = await found.services.sessions.trajectory(ended["session_id"], LOCAL)
        given = json.loads(text).get("feedback", [])
        return bool(given)

    return kept


async def a_manual_step_and_its_result(bench: Bench) -> Kept:
    session_id = await _manual(bench)
    answer = await bench.client.post(
        f"/v1/sessions/{session_id}/steps",
        json={"step_type": "TOOL", "step_key": "s", "payload": {"action": "once", "arguments": {}}},
        headers={"prefer": "wait=10"},
    )
    assert answer.json()["status"] == "SUCCEEDED", answer.text
    return _step_is(session_id, "SUCCEEDED")


async def a_manual_step_that_was_looked_up(bench: Bench) -> Kept:
    session_id = await _manual(bench)
    path = f"/v1/sessions/{session_id}/steps"
    step = {"step_type": "TOOL", "step_key": "s", "payload": {"action": "look", "arguments": {}}}
    await bench.client.post(path, json=step)
    while True:
        answer = await bench.client.get(f"{path}/s")
        if answer.json()["status"] == "SUCCEEDED":
            return _step_is(session_id, "SUCCEEDED")


async def a_manual_step_that_goes_on(bench: Bench) -> Kept:
    """202: the step is taken, and will be there to be polled."""
    session_id = await _manual(bench)
    answer = await bench.client.post(
        f"/v1/sessions/{session_id}/steps",
        json={"step_type": "TOOL", "step_key": "s", "payload": {"action": "hang", "arguments": {}}},
    )
    assert answer.status_code == 202, answer.text
    return _step_is(session_id, "")


async def a_finish(bench: Bench) -> Kept:
    session_id = await _manual(bench)
    answer = await bench.client.post(f"/v1/sessions/{session_id}/finish", json={"output": 7})
    assert answer.status_code == 200, answer.text
    return _ended(session_id)


async def a_deletion(bench: Bench) -> Kept:
    ended = await bench.open("quick", wait=10)
    bench.store.sync()
    answer = await bench.client.delete(f"/v1/sessions/{ended['session_id']}")
    assert answer.status_code == 204, answer.text

    async def kept(found: Gateway) -> bool:
        await found.erasing.finish()
        try:
            found.driver.sessions.find(ended["session_id"])
        except Erased:
            view = await view_of(found, ended["session_id"])
            return view is not None and view.status is SessionStatus.SUCCEEDED
        return False

    return kept


async def a_deletion_that_has_begun(bench: Bench) -> Kept:
    """When the key goes, the tombstone is on disk, and the note by which a start finishes it."""
    ended = await bench.open("quick", wait=10)
    bench.store.sync()
    seen: list[ForgetfulStore] = []
    erase = bench.store.erase

    def watched(table: Table, *keys: bytes) -> None:
        seen.append(bench.store.durable())
        erase(table, *keys)

    bench.store.erase = watched  # type: ignore[method-assign]
    await bench.client.delete(f"/v1/sessions/{ended['session_id']}")

    async def kept(found: Gateway) -> bool:
        tombstone = seen[0].get(Table.SESSION, session_row(ended["session_id"]))
        return bool([*seen[0].scan(Table.META, erasing_row())]) and tombstone is not None

    return kept


async def a_call_back(bench: Bench) -> Kept:
    opened = await bench.open("operated")
    while not bench.witness.sent:
        await bench.client.get("/healthz")
    callback = bench.witness.sent[-1].context.callback
    assert callback is not None
    bench.store.sync()
    answer = await bench.client.post(
        callback.url,
        json={"output": "done"},
        headers={"authorization": f"Bearer {callback.token}"},
    )
    assert answer.status_code == 200, answer.text
    return _has_event(bench, opened["session_id"], "OperationEnded")


# ---- calls and records ---------------------------------------------------------------------------


async def an_attempt_that_may_do_something(bench: Bench) -> Kept:
    """At the first byte of a BY_KEY, NONE or observe call its AttemptStarted is on disk."""
    seen: dict[str, bool] = {}

    def look(outgoing: Outgoing) -> None:
        context = outgoing.context
        on_disk = events_in(bench.store.durable(), context.session_id)
        starts = {event.call_id for event in on_disk if isinstance(event, AttemptStarted)}
        seen[context.step] = context.call_id in starts

    bench.witness.look = look
    await bench.open("all_roles", wait=10)
    assert set(seen) == {"plan", "keyed", "once", "remember", "judge"}

    async def kept(found: Gateway) -> bool:
        return all(seen[step] for step in ("keyed", "once", "remember"))

    return kept


async def a_delivered_trajectory(bench: Bench) -> Kept:
    """What a line in the trajectory files tells is on disk when the line is written."""
    seen: list[ForgetfulStore] = []
    log = bench.gateway.outbox._trajectories
    append = log.append

    def watched(lines: Sequence[bytes], now_ms: int) -> None:
        seen.append(bench.store.durable())
        append(lines, now_ms)

    log.append = watched  # type: ignore[method-assign]
    opened = await bench.open("quick")
    while not seen:
        await bench.client.get("/healthz")
    on_disk = events_in(seen[0], opened["session_id"])

    async def kept(found: Gateway) -> bool:
        return any(isinstance(event, SessionEnded) for event in on_disk)

    return kept


OF_SESSIONS: tuple[Promise, ...] = (
    an_opened_session,
    the_same_session_by_its_key,
    an_end_that_was_waited_for,
    an_end_that_was_asked_for_again,
    an_end_that_was_looked_up,
    an_end_in_a_trajectory,
    an_end_in_a_list,
    an_event_of_a_stream,
    a_cancel,
    feedback,
    a_manual_step_and_its_result,
    a_manual_step_that_was_looked_up,
    a_manual_step_that_goes_on,
    a_finish,
    a_deletion,
    a_deletion_that_has_begun,
    a_call_back,
    an_attempt_that_may_do_something,
    a_delivered_trajectory,
)


# ---- inside --------------------------------------------------------------------------------------


async def first_of(*requests: Awaitable[Any]) -> Any:
    """The JSON of the answer that comes first."""
    pending = [asyncio.ensure_future(one) for one in requests]
    done, rest = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    answer = next(iter(done)).result()
    assert answer.status_code in (200, 201), answer.text
    for one in rest:
        one.cancel()
    return answer.json()


async def _manual(bench: Bench) -> str:
    answer = await bench.client.post("/v1/sessions", json={"workflow": "quick", "mode": "MANUAL"})
    assert answer.status_code == 201, answer.text
    bench.store.sync()
    session_id: str = answer.json()["session_id"]
    return session_id


def _ended(session_id: str) -> Kept:
    async def kept(found: Gateway) -> bool:
        view = await view_of(found, session_id)
        return view is not None and view.status is SessionStatus.SUCCEEDED

    return kept


def _has_event(bench: Bench, session_id: str, name: str) -> Kept:
    async def kept(found: Gateway) -> bool:
        return any(type(e).__name__ == name for e in events_in(found.store, session_id))

    return kept


def _step_is(session_id: str, status: str) -> Kept:
    async def kept(found: Gateway) -> bool:
        try:
            step = await found.services.sessions.step_result(session_id, "s", principal=LOCAL)
        except AcpFailure:
            return False
        return not status or step.status.value == status

    return kept
