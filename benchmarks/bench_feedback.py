"""`make bench-feedback`: how many judgements a gateway takes, how soon they are rewards.

One gateway with reward rules on core 0, the load on core 1. Judgements go to many sessions that
have ended, one in each request and many; each is on disk before it is answered, and a rate counts
the time until the log has all. Then single ones: until the rewards that a client reads have it, and
until its line stands in the log. The last line is one JSON object.
"""

import argparse
import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop
from figures import load_now
from load import Measured, closed_loop, post
from pinned import ask, gateway, port_of, stay_beside_the_gateway

SESSIONS = 2_000
"""More than are kept in memory by default: late judgements are about sessions of yesterday."""
CONNECTIONS = 64
BULK, BULK_CONNECTIONS = 200, 4
"""How a system brings what it has learned of many sessions: 200 judgements a request."""
LOOK_EVERY_S = 0.05
SINGLES = 100
LOG_WITHIN_S = 10.0
RULES = """
rewards: bench
version: 1.0.0
rules:
  - {name: stars, kind: outcome, each: feedback, value: feedback.score}
  - {name: words, kind: outcome, each: comment, value: "size(comment.tags) > 0 ? 0.0 : 1.0"}
  - {name: tries, kind: cost, each: attempt, part: step, cost: 0.1}
  - {name: time, kind: cost, cost: double(end.duration_ms) / 60000.0}
"""
WORKFLOW = """
workflow: bench
version: 1.0.0
steps: [{name: act, role: execute, component: echo, action: echo}]
output: act.output
"""


class Rates(NamedTuple):
    """Judgements a second: until each is acknowledged, and until the log has all of them."""

    acknowledged: int
    written: int


def opened(url: str, count: int) -> list[str]:
    """Sessions by hand, finished at once."""
    found = []
    body = json.dumps({"workflow": "bench", "input": {}, "mode": "MANUAL"}).encode()
    for _ in range(count):
        session_id = json.loads(ask("POST", f"{url}/v1/sessions", body=body))["session_id"]
        ask("POST", f"{url}/v1/sessions/{session_id}/finish", body=b'{"output": 1}')
        found.append(session_id)
    return found


def judged(session_id: str, *, author: str) -> bytes:
    """One rating."""
    body = {"kind": "RATING", "score": 0.5, "author": author}
    return post(f"/v1/sessions/{session_id}/feedback", json.dumps(body).encode())


async def rate(url: str, sessions: Sequence[str], *, seconds: float) -> Rates:
    """Judgements that are on disk."""
    spread = itertools.cycle(sessions)

    def make(number: int) -> bytes:
        return judged(next(spread), author=f"a{number}")

    run = await closed_loop(port_of(url), make, connections=CONNECTIONS, seconds=seconds)
    return _rates(url, run.expect(201, b"feedback_id"))


async def bulk_rate(url: str, sessions: Sequence[str], *, seconds: float) -> Rates:
    """The same where each request brings many, of as many sessions."""
    spread = itertools.cycle(sessions)

    def make(number: int) -> bytes:
        feedback = [
            {
                "session_id": next(spread),
                "feedback": {"kind": "RATING", "score": 0.5, "author": f"b{number}"},
            }
            for _ in range(BULK)
        ]
        return post("/v1/feedback", json.dumps({"feedback": feedback}).encode())

    run = await closed_loop(port_of(url), make, connections=BULK_CONNECTIONS, seconds=seconds)
    return _rates(url, run.expect(200, b'"refused":0'), each=BULK)


def _rates(url: str, run: Measured, *, each: int = 1) -> Rates:
    """Lines that are still to be written take the gateway's time as well: it counts too."""
    count = len(run.latencies_ms) * each
    begin = time.perf_counter()
    while _waiting(url):
        time.sleep(LOOK_EVERY_S)
    seconds = run.seconds + time.perf_counter() - begin
    return Rates(round(count / run.seconds), round(count / seconds))


def _waiting(url: str) -> bool:
    found = re.search(rb"^acp_outbox_lag (\S+)", ask("GET", f"{url}/metrics"), re.MULTILINE)
    assert found is not None, "the gateway tells how much waits"
    return float(found[1]) > 0


def until_rewarded(url: str, session_id: str, *, number: int, folder: Path) -> tuple[float, float]:
    """Milliseconds until a client reads the reward, and until the log has it."""
    text = f'"author":"single{number}"'.encode()
    begin = time.perf_counter()
    body = json.dumps({"kind": "RATING", "score": 1, "author": f"single{number}"}).encode()
    ask("POST", f"{url}/v1/sessions/{session_id}/feedback", body=body)
    found = ask("GET", f"{url}/v1/sessions/{session_id}/trajectory")
    assert text in found, "what was promised is there"
    assert json.loads(found)["rewards"]["vector"]["session"]["quality"]["weight"] >= 1
    read_ms = (time.perf_counter() - begin) * 1000
    while text not in max(folder.rglob("*.jsonl"), key=str).read_bytes():
        assert time.perf_counter() - begin < LOG_WITHIN_S, "it never came to the log"
    return read_ms, (time.perf_counter() - begin) * 1000


async def measured(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place, gateway("http", directory=Path(place)) as bed:
        stay_beside_the_gateway()
        ask("PUT", f"{bed.url}/v1/workflows/bench/versions/1.0.0", body=WORKFLOW.encode())
        kind = "application/yaml"
        ask("PUT", f"{bed.url}/v1/rewards/rules", body=RULES.encode(), kind=kind)
        alone = opened(bed.url, SINGLES)
        times = [
            until_rewarded(bed.url, one, number=number, folder=Path(place))
            for number, one in enumerate(alone)
        ]
        sessions = opened(bed.url, SESSIONS)
        singly = await rate(bed.url, sessions, seconds=seconds)
        others = opened(bed.url, SESSIONS)
        in_bulk = await bulk_rate(bed.url, others, seconds=seconds)
    reads, logs = (sorted(column) for column in zip(*times, strict=True))
    return {
        "feedbacks_per_s": in_bulk.written,
        "feedbacks_acknowledged_per_s": in_bulk.acknowledged,
        "feedbacks_singly_per_s": singly.written,
        "feedbacks_singly_acknowledged_per_s": singly.acknowledged,
        "feedback_to_reward_ms": round(logs[int(0.99 * len(logs))], 1),
        "feedback_to_reward_p50_ms": round(logs[len(logs) // 2], 1),
        "feedback_to_read_ms": round(reads[int(0.99 * len(reads))], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    load = load_now()
    figures = uvloop.run(measured(seconds))
    print(json.dumps({**figures, "load_before": load}))


if __name__ == "__main__":
    sys.exit(main())
