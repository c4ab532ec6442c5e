"""What clients of a gateway do in a bench: open, run sessions, take a step by hand, read a state.

Every function runs its traffic to the end and stops the bench at the first wrong answer.
"""

import json
import time

import uvloop
from load import Measured, always, closed_loop, get, post
from pinned import Bed, ask, port_of

INPUT = {"text": "x" * 600, "amount": 9007199254740993}
WAIT = "prefer: wait=20\r\n"
ARGUMENTS = {"query": "q" * 100}


def open_keyed(bed: Bed, *, connections: int, seconds: float) -> Measured:
    """Manual sessions, each with a key of its own; an answer says that it is on disk."""
    begun = time.time_ns()

    def make(number: int) -> bytes:
        body = {"workflow": "four", "mode": "MANUAL", "session_key": f"{begun}-{number}"}
        return post("/v1/sessions", json.dumps({**body, "input": 1}).encode())

    work = closed_loop(bed.port, make, connections=connections, seconds=seconds)
    return uvloop.run(work).expect(201, b'"session_id"')


def four_calls(bed: Bed, *, connections: int, seconds: float = 0.0, sessions: int = 0) -> Measured:
    """Sessions of four calls (plan, execute, observe, reflect), each waited for."""
    body = json.dumps({"workflow": "four", "input": INPUT}).encode()
    request = post("/v1/sessions", body, headers=WAIT)
    work = closed_loop(
        bed.port, always(request), connections=connections, seconds=seconds, requests=sessions
    )
    return uvloop.run(work).expect(200, b'"SUCCEEDED"')


def manual_steps(bed: Bed, *, seconds: float) -> Measured:
    """Tool steps of manual sessions, one at a time; a few to a session, as agents do."""
    per_session = 20
    payload = {"action": "bench.echo", "arguments": ARGUMENTS}
    request = json.dumps({"step_type": "TOOL", "payload": payload}).encode()
    total = Measured()
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        path = f"/v1/sessions/{open_manual(bed)}/steps"
        steps = always(post(path, request, headers=WAIT))
        work = closed_loop(bed.port, steps, connections=1, requests=per_session)
        some = uvloop.run(work).expect(200, b'"SUCCEEDED"')
        total.latencies_ms += some.latencies_ms
    return total


def direct_calls(bed: Bed, *, seconds: float) -> Measured:
    """The same call as a manual step's, straight to the component."""
    request = post("/acp/v1/execute", json.dumps({"arguments": ARGUMENTS}).encode())
    work = closed_loop(port_of(bed.echo), always(request), connections=1, seconds=seconds)
    return uvloop.run(work).expect(200, b'"output"')


def open_manual(bed: Bed) -> str:
    """A manual session that stays open; its id."""
    body = json.dumps({"workflow": "four", "mode": "MANUAL", "input": INPUT}).encode()
    answer = json.loads(ask("POST", f"{bed.url}/v1/sessions", body=body))
    return str(answer["session_id"])


def open_many(bed: Bed, sessions: int) -> list[str]:
    """That many manual sessions, all left open; their ids."""
    body = json.dumps({"workflow": "four", "mode": "MANUAL", "input": INPUT}).encode()
    request = post("/v1/sessions", body)
    work = closed_loop(bed.port, always(request), connections=20, requests=sessions)
    uvloop.run(work).expect(201, b'"session_id"')
    return stored_ids(bed, sessions, status="RUNNING")


def stored_ids(bed: Bed, at_most: int, *, status: str = "SUCCEEDED") -> list[str]:
    """The ids of so many sessions, page by page."""
    ids: list[str] = []
    after = ""
    while len(ids) < at_most:
        path = f"{bed.url}/v1/sessions?status={status}&limit=500&after={after}"
        page = json.loads(ask("GET", path))
        ids += [session["session_id"] for session in page.get("sessions", ())]
        after = page.get("next", "")
        if not after:
            break
    return ids[:at_most]


def read_states(bed: Bed, ids: list[str], *, seconds: float) -> Measured:
    """State reads on four connections, over all these sessions in turn."""
    requests = [get(f"/v1/sessions/{session_id}") for session_id in ids]
    work = closed_loop(
        bed.port, lambda n: requests[n % len(requests)], connections=4, seconds=seconds
    )
    return uvloop.run(work).expect(200, b'"RUNNING"')
