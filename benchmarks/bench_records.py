"""The records' promised figures: the seed's question, ingest, lag; JSON on the last line.

Each figure by itself, over TCP, through the shipped views. The question is: among the sessions with
a given comment tag, the share whose calls include a given action. SESSIONS and 2,000,000 sessions
are made by SQL inside the store, 2 % of them delivered again and as many at a newer version. The
baseline is the seed's: Redis lists, one session after the other, on a real redis-server
(Debian's package), 100,000 sessions. Ingest goes through the trajectory log and the feed. For the
lag this program plays the outbox: 500 sessions a second end, every 60 ms what ended is put into the
log, synced; the lag ends when the feed has all rows of it in. `child_cores` is what the process
costs meanwhile; once with sessions of three tables, once with sessions of all ten. The archive's
rate is that of a pass over 256 MB (`archive_rate`). What the gateway
beside it notices is measured in `records_beside`, judgements in `bench_feedback`.
"""

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop
from archive_rate import archive_rate
from bench_feedback import measured as feedbacks
from records_beside import beside
from records_dashboard import dashboard

from acp_spec.model.ids import session_id
from acp_spec.model.times import rfc3339
from gateway.runtime.outbox import PROMPT_LINGER_S
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feed_status import FeedingStatus
from gateway.stores.records.order import Order, Ready
from gateway.stores.records.position import POSITION_FILE, PositionFile
from gateway.stores.records.reach import Limits, Reader, ask
from gateway.stores.records.store import client_of
from gateway.stores.records.tests.sessions import whole
from gateway.stores.trajectory_log import BATCH_LINES_MAX, TrajectoryLog

SESSIONS_DEFAULT = 200_000
MANY = 2_000_000
REDIS_SESSIONS = 100_000
INGEST_SESSIONS = 10_000
ATTEMPTS = 4
RATE, RATE_S = 500, 10
FEEDBACK_S = 10.0
ASKED = 11
KEY = "bench"

QUESTION = (
    "SELECT avg(has(call_actions, 'action.3')) FROM v_sessions WHERE has(comment_tags, 'late')"
)
MADE = """
INSERT INTO sessions (session_id, opened_at, tenant, workflow, status, succeeded, attempts, calls,
    call_actions, call_components, call_steps, call_ms, comment_tags, scores, sequence, row_hash)
SELECT 'S' || leftPad(toString(number), 12, '0'),
    toDateTime64('2026-11-01 00:00:00', 3) + number / 500, 'default',
    'flow.' || toString(number % 20), 'SUCCEEDED', number % 9 > 0, 4, 4,
    arrayMap(n -> 'action.' || toString(cityHash64(number, n) % 12), range(4)),
    arrayMap(n -> 'component.' || toString(cityHash64(number, n) % 30), range(4)),
    ['plan', 'act', 'act', 'reflect'],
    arrayMap(n -> toInt64(cityHash64(n, number) % 900), range(4)),
    if(cityHash64(number) % 4 = 0, ['late'], []), [toFloat64(number % 5)], {sequence}, number
FROM numbers({count}) WHERE {which}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS_DEFAULT)
    parser.add_argument("--many", type=int, default=MANY)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run beside a gateway")
    options = parser.parse_args()
    figures: dict[str, float] = {"sessions": options.sessions}
    for name, figure in (
        ("seed_question_ms", lambda: seed_question(options.sessions)),
        ("two_million_ms", lambda: seed_question(options.many)),
        ("redis_list_ms", redis_lists),
    ):
        figures[name] = figure()
        print(f"{name}: {figures[name]:.1f}", flush=True)
    with child() as running:
        figures |= dashboard(running.endpoint, options.sessions)
    print(figures, flush=True)
    figures |= ingest()
    print(figures, flush=True)
    figures |= archive_rate(line)
    print(figures, flush=True)
    figures |= lag(line)
    figures |= lag(rich_line, suffix="_all_tables")
    print(figures, flush=True)
    figures |= beside(options.seconds)
    print(figures, flush=True)
    figures |= uvloop.run(feedbacks(FEEDBACK_S))
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


# ---- a child over a folder of its own ------------------------------------------------------------


class Child:
    def __init__(self, folder: Path) -> None:
        self.log = TrajectoryLog(folder / "log", rotate_bytes=64 << 20, rotate_ms=3_600_000)
        (folder / "log").mkdir(parents=True)
        self._position = folder / "records" / POSITION_FILE
        order = Order(log_dir=str(folder / "log"), records_dir=str(folder / "records"), key=KEY)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway.stores.records.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        self.process.stdin.flush()
        ready = msgspec.json.decode(self.process.stdout.readline(), type=Ready)
        self.endpoint = Endpoint(host="127.0.0.1", port=ready.port, password=KEY)

    def status(self) -> FeedingStatus:
        return msgspec.json.decode(ask(self.endpoint, "status"), type=FeedingStatus)

    def offset(self) -> int:
        """How far the feed has come in the one file of the log, as it keeps it on disk."""
        with PositionFile(self._position) as position:
            return position.progress.at.offset

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def child() -> Iterator[Child]:
    folder = Path(tempfile.mkdtemp())
    running = Child(folder)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


# ---- the seed's question -------------------------------------------------------------------------


def seed_question(sessions: int) -> float:
    """The median of some askings, first one not counted, in milliseconds."""
    with child() as running:
        client = client_of(running.endpoint)
        for sequence, which in ((1, "1"), (1, "number % 50 = 7"), (2, "number % 50 = 9")):
            client.command(MADE.format(count=sessions, sequence=sequence, which=which))
        client.close()
        reader = Reader(running.endpoint, timeout_ms_max=60_000)
        answers, took = set(), []
        for _ in range(ASKED):
            begun = time.perf_counter()
            answer = reader.query(QUESTION, Limits(timeout_ms=60_000))
            took.append((time.perf_counter() - begun) * 1000)
            answers.add(bytes(answer.data))
        counted = reader.query("SELECT count() FROM v_sessions", Limits(timeout_ms=60_000))
        assert msgspec.json.decode(counted.data) == [[sessions]], "each session once"
        assert len(answers) == 1
        return statistics.median(took[1:])


def redis_lists() -> float:
    """The same question over Redis lists, one session after the other, in milliseconds."""
    with redis() as call:
        for number in range(REDIS_SESSIONS):
            actions = [f"action.{(number * 7 + n * 5) % 12}" for n in range(ATTEMPTS)]
            tags = ["late"] if number % 4 == 0 else ["none"]
            call([["RPUSH", f"calls:{number}", *actions], ["RPUSH", f"tags:{number}", *tags]])
        begun = time.perf_counter()
        tagged = having = 0
        for number in range(REDIS_SESSIONS):
            (tags,) = call([["LRANGE", f"tags:{number}", "0", "-1"]])
            if "late" in tags:
                tagged += 1
                (actions,) = call([["LRANGE", f"calls:{number}", "0", "-1"]])
                having += "action.3" in actions
        assert tagged == REDIS_SESSIONS // 4
        return (time.perf_counter() - begun) * 1000


Command = list[str]


@contextmanager
def redis() -> Iterator[Callable[[list[Command]], list[list[str]]]]:
    """A redis-server on a free port, and a way to send it commands in one go."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--port", str(port), "--dir", folder, "--save", "", "--bind", "127.0.0.1"]
        server = subprocess.Popen(["redis-server", *flags], stdout=subprocess.DEVNULL)
        try:
            connection = _connected(port)
            with connection, connection.makefile("rb") as answers:

                def call(commands: list[Command]) -> list[list[str]]:
                    parts = []
                    for command in commands:
                        parts.append(f"*{len(command)}\r\n")
                        parts += [f"${len(word.encode())}\r\n{word}\r\n" for word in command]
                    connection.sendall("".join(parts).encode())
                    return [_answer(answers.readline) for _ in commands]

                yield call
        finally:
            server.terminate()
            server.wait()


def _connected(port: int) -> socket.socket:
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit("redis-server did not start: apt-get install redis-server")


def _answer(readline: Callable[[], bytes]) -> list[str]:
    head = readline()
    if head[:1] != b"*":
        return [head.decode().strip()]
    found = []
    for _ in range(int(head[1:])):
        readline()
        found.append(readline().decode().strip())
    return found


# ---- ingest and lag ------------------------------------------------------------------------------


def line(number: int, now_ms: int) -> bytes:
    """A session of four attempts with payloads, a score and a comment, as the outbox writes it."""
    name = session_id(now_ms, 0, random_64=number)
    at = rfc3339(now_ms)
    calls = [
        {
            "call_id": f"{name}{n}",
            "attempt": 1,
            "step": f"step{n}",
            "role": "execute",
            "component": f"component.{n}",
            "component_version": "1.0.0",
            "action": f"action.{(number + n) % 12}",
            "arguments": {"text": f"customer {number} asks for something {n}", "amount": number},
            "output": {"said": f"answer {number} to {n}", "ok": True},
            "queued_at": at,
            "sent_at": at,
            "ended_at": at,
            "service_ms": 5 + n,
            "timeout_ms": 5000,
        }
        for n in range(ATTEMPTS)
    ]
    said = {
        "schema_version": "1.0",
        "session_id": name,
        "lineage_id": name[::-1],
        "tenant": "default",
        "workflow": "hotline@1.0.0",
        "status": "SUCCEEDED",
        "input": {"text": f"customer {number} asks"},
        "calls": calls,
        "rewards": {"operational": {"succeeded": True, "attempts": 4, "calls": 4}},
        "output": {"said": f"answer {number}"},
        "opened_at": at,
        "ended_at": at,
        "sequence": 20,
    }
    return msgspec.json.encode(said) + b"\n"


LineOf = Callable[[int, int], bytes]
"""A session's line by its number and the time now."""


def rich_line(number: int, now_ms: int) -> bytes:
    """A session that says something in almost every table; one in ten also has a gap and feedback.

    What a feed costs goes by the tables that a tick writes: with these it writes all ten.
    """
    said = whole(number, comments=("#good one",) if number % 10 == 0 else ())
    said = msgspec.structs.replace(
        said,
        session_id=session_id(now_ms, 0, random_64=number),
        gaps=said.gaps if number % 10 == 0 else (),
        opened_at=rfc3339(now_ms),
        ended_at=rfc3339(now_ms + 40),
    )
    return msgspec.json.encode(said) + b"\n"


def ingest() -> dict[str, float]:
    """Attempts a second that a backlog is fed with."""
    with child() as running:
        now_ms = int(time.time() * 1000)
        lines = [line(number, now_ms) for number in range(INGEST_SESSIONS)]
        begun, used = time.perf_counter(), running.cpu_s()
        for at in range(0, len(lines), BATCH_LINES_MAX):
            running.log.append(lines[at : at + BATCH_LINES_MAX], now_ms)
        while running.status().counts.sessions < INGEST_SESSIONS:
            time.sleep(0.02)
        took = time.perf_counter() - begun
        return {
            "ingest_attempts_per_s": INGEST_SESSIONS * ATTEMPTS / took,
            "ingest_child_cores": (running.cpu_s() - used) / took,
        }


def lag(line_of: LineOf, *, suffix: str = "") -> dict[str, float]:
    """From a session's end to its rows, 95 of 100, at 500 sessions/s; and what the child costs.

    The place that the feed keeps tells how far it is: asking the child would be work for it.
    """
    with child() as running:
        ended: deque[tuple[float, int]] = deque()
        lags: list[float] = []
        told = size = 0
        begun, used = time.perf_counter(), running.cpu_s()
        written_at = begun
        while (now := time.perf_counter()) - begun < RATE_S or ended:
            is_over = now - begun >= RATE_S
            if not is_over and now - written_at >= PROMPT_LINGER_S:
                new = range(told, int((now - begun) * RATE))
                now_ms = int(time.time() * 1000)
                lines = [line_of(number, now_ms) for number in new]
                for number, text in zip(new, lines, strict=True):
                    size += len(text)
                    ended.append((begun + number / RATE, size))
                running.log.append(lines, now_ms)
                written_at, told = time.perf_counter(), new.stop
            offset = running.offset()
            seen = time.perf_counter()
            while ended and ended[0][1] <= offset:
                lags.append(seen - ended.popleft()[0])
            time.sleep(0.005)
        took = time.perf_counter() - begun
        return {
            f"lag{suffix}_ms": statistics.quantiles(lags, n=20)[-1] * 1000,
            f"lag{suffix}_median_ms": statistics.median(lags) * 1000,
            f"child{suffix}_cores": (running.cpu_s() - used) / took,
        }


if __name__ == "__main__":
    main()
