"""One data directory, many lives of its gateway: started armed, used until it dies, started again.

`Ledger` is what the clients were told; whatever stands there must be so after the last life.
"""

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIFE_S_MAX = 30.0
"""A life that has not ended or got ready by then is a failure of the test."""


class Launcher:
    """The fork server of `killing`, and the gateway that lives at the moment."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.log = folder / "lives.log"
        command = [sys.executable, "-m", "gateway.tests.durability.killing", str(self.log)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.pid = 0

    def start(self, point: str = "", passages: int = 0) -> bool:
        """Begin a life; True once it serves, False if it died before."""
        order = {
            "point": point,
            "passages": passages,
            "data_dir": str(self.folder / "data"),
            "http": f"127.0.0.1:{self.port}",
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self.pid = self._next()["pid"]
        said = self._next()
        if "ready" in said:
            return True
        self._check(said)
        return False

    def wait(self, within_s: float) -> bool:
        """Whether it died by its own hand within the time."""
        try:
            self._check(self._said.get(timeout=within_s))
        except queue.Empty:
            return False
        return True

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End this life from outside; the exit status."""
        os.kill(self.pid, number)
        status: int = self._next()["ended"]
        self.pid = 0
        return status

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LIFE_S_MAX)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _check(self, said: dict[str, Any]) -> None:
        assert said == {"ended": -signal.SIGKILL}, f"{said}: {self._tail()}"
        self.pid = 0

    def _next(self) -> dict[str, Any]:
        try:
            return self._said.get(timeout=LIFE_S_MAX)
        except queue.Empty:
            raise AssertionError(f"the gateway says nothing: {self._tail()}") from None

    def _tail(self) -> str:
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return text[-3_000:]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))


@dataclass
class Ledger:
    """What clients were told. Appends only, so threads need no lock."""

    opened: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    maybe_deleted: set[str] = field(default_factory=set)
    registered: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


@dataclass
class Clients:
    """Those who use the gateway while it lives: each ends when nobody answers any more."""

    port: int
    ledger: Ledger
    register: Callable[[], dict[str, object]]
    names: Counter[str] = field(default_factory=Counter)

    def begin(self) -> list[threading.Thread]:
        jobs = (self._open, self._open, self._open_and_wait, self._operate)
        threads = [threading.Thread(target=self._work, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        return threads

    def _work(self, job: Callable[[], None]) -> None:
        try:
            while True:
                job()
        except (OSError, http.client.HTTPException):
            return  # it died

    def ask(self, method: str, path: str, *, body: object = None, wait_s: int = 0) -> Any:
        """The JSON of the answer with its status; raises when the gateway is gone."""
        headers = {"content-type": "application/json", "prefer": f"wait={wait_s}"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as gateway:
            gateway.request(method, path, json.dumps(body or {}), headers)
            answer = gateway.getresponse()
            text = answer.read()
        found = json.loads(text) if text else {}
        if answer.status >= 400:
            self.ledger.refused[found["error"]["reason"]] += 1
        return {**found, "_status": answer.status}

    def _open(self) -> None:
        answer = self.ask("POST", "/v1/sessions", body={"workflow": "counted"})
        if answer["_status"] == 201:
            self.ledger.opened.append(answer["session_id"])

    def _open_and_wait(self) -> None:
        answer = self.ask("POST", "/v1/sessions", body={"workflow": "counted"}, wait_s=5)
        if answer["_status"] in (200, 201):
            self.ledger.opened.append(answer["session_id"])
        if answer["_status"] == 200:
            self.ledger.ended[answer["session_id"]] = answer["status"]

    def _operate(self) -> None:
        answer = self.ask("POST", "/v1/components", body=self.register())
        if answer["_status"] == 201:
            self.ledger.registered.append(answer["component_id"])
        candidates = [one for one in self.ledger.ended if one not in self.ledger.maybe_deleted]
        if not candidates:
            return
        self.ledger.maybe_deleted.add(candidates[0])
        answer = self.ask("DELETE", f"/v1/sessions/{candidates[0]}")
        if answer["_status"] == 204:
            self.ledger.deleted.append(candidates[0])
