"""An open-loop generator: so many sessions a second, whether or not the earlier ones have ended.

What overload is about: clients do not wait for each other. Bounded all the same: at most
`IN_FLIGHT_MAX` requests are open, what would go beyond is counted as not offered. Keep-alive
connections are used again; each request is one session, waited for until its deadline.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field

from load import post

IN_FLIGHT_MAX = 3_000


@dataclass(frozen=True, slots=True)
class One:
    """What became of one session. `at_s`: when it was offered; `ms`: until its answer."""

    at_s: float
    ms: float
    status: int
    outcome: str
    has_hint: bool


@dataclass(slots=True)
class Run:
    """What came of one phase."""

    offered_per_s: float
    seconds: float
    deadline_ms: int
    sessions: list[One] = field(default_factory=list)
    not_offered: int = 0

    def good(self) -> list[One]:
        """Sessions that succeeded within their deadline."""
        return [s for s in self.sessions if s.outcome == "SUCCEEDED" and s.ms <= self.deadline_ms]

    @property
    def goodput_per_s(self) -> float:
        """Until the last good one has ended: what still drains is no extra."""
        good = self.good()
        end_s = max((one.at_s + one.ms / 1000 for one in good), default=0.0)
        return len(good) / max(self.seconds, end_s)

    def admitted(self) -> list[One]:
        return [s for s in self.sessions if s.status in (200, 201)]

    def refused(self) -> list[One]:
        return [s for s in self.sessions if s.status in (429, 503)]

    def admitted_ms(self, share: float) -> float:
        """A percentile of the admitted; one that did not succeed counts as over its deadline."""
        times = sorted(
            s.ms if s.outcome == "SUCCEEDED" else max(s.ms, self.deadline_ms + 1.0)
            for s in self.admitted()
        )
        return times[min(len(times) - 1, int(share * len(times)))] if times else 0.0

    def told(self) -> str:
        """One line for a person."""
        statuses: dict[str, int] = {}
        for one in self.sessions:
            name = f"{one.status} {one.outcome}".strip()
            statuses[name] = statuses.get(name, 0) + 1
        return (
            f"offered {self.offered_per_s:.0f}/s for {self.seconds:.0f} s:"
            f" good {self.goodput_per_s:.1f}/s,"
            f" admitted p50 {self.admitted_ms(0.5):.0f} p99 {self.admitted_ms(0.99):.0f} ms,"
            f" {dict(sorted(statuses.items()))}, not offered {self.not_offered}"
        )


class Clients:
    """Connections to one gateway, used again and again."""

    def __init__(self, port: int, *, workflow: str, deadline_ms: int) -> None:
        self._port = port
        self._deadline_ms = deadline_ms
        body = {"workflow": workflow, "input": {"text": "x" * 200}, "deadline_ms": deadline_ms}
        wait_s = -(-deadline_ms // 1000) + 2
        self._request = post(
            "/v1/sessions", json.dumps(body).encode(), headers=f"prefer: wait={wait_s}\r\n"
        )
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self, per_s: float, seconds: float) -> Run:
        """Offer sessions at this rate, then wait for all of them."""
        run = Run(per_s, seconds, self._deadline_ms)
        tasks: set[asyncio.Task[None]] = set()
        begin = time.perf_counter()
        for number in range(int(per_s * seconds)):
            due = begin + number / per_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if len(tasks) >= IN_FLIGHT_MAX:
                run.not_offered += 1
                continue
            task = asyncio.create_task(self._one(run, begin))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        return run

    async def _one(self, run: Run, begin: float) -> None:
        sent = time.perf_counter()
        connection = self._idle.pop() if self._idle else None
        reader, writer = connection or await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._request)
        status, has_hint, body = await _answer(reader)
        self._idle.append((reader, writer))
        ms = (time.perf_counter() - sent) * 1000
        run.sessions.append(One(sent - begin, ms, status, _outcome(status, body), has_hint))

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    """Status, whether it says when to come back, and the body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    start = head.find(b"content-length:")
    length = int(head[start + 15 : head.index(b"\r\n", start)]) if start >= 0 else 0
    return int(head[9:12]), b"retry-after:" in head, await reader.readexactly(length)


def _outcome(status: int, body: bytes) -> str:
    if status not in (200, 201):
        reason: str = json.loads(body)["error"]["reason"]
        return reason
    view = json.loads(body)
    if view["status"] == "SUCCEEDED" and "output" not in view:
        return "SUCCEEDED WITHOUT OUTPUT"
    if view["status"] == "FAILED":
        return f"FAILED {view['error']['reason']}"
    return str(view["status"])
