"""A desk whose adviser gets a new version: real gateway, components that know only the pages.

`advise` is a READ of the adviser, `post` a WRITE of the books that must never be repeated. The
books number what they post, so a caller's receipt and the books' own log are the witness.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, member, serving

Advise = Callable[[int], "str | tuple[int, str]"]
BOOK = {"effect": "WRITE", "idempotency": "NONE"}
WAIT_S = 60.0
LOOKS = 5
"""Between two callers, so that a quick machine does not serve hundreds between two judgements."""


def good(question: int) -> str:
    return json.dumps({"output": {"answer": question * 2, "by": "adviser"}})


def failing(question: int) -> tuple[int, str]:
    """It answers, so no breaker opens: what fails is the session."""
    said = {"code": "FAILED_PRECONDITION", "reason": "NOT_HERE", "message": "no"}
    return 422, json.dumps({"error": said})


def wrong(question: int) -> str:
    return json.dumps({"output": {"answer": question * 2 + 1, "by": "adviser"}})


def slow(question: int) -> str:
    """Its own time, which is what is measured."""
    threading.Event().wait(0.4)
    return good(question)


def respelt(question: int) -> str:
    """The same value, written differently."""
    return f'{{"output": {{ "by": "adviser", "answer": {question * 2}.0 }} }}'


def adviser(name: str, version: str, advise: Advise) -> Stranger:
    def execute(body: str) -> str | tuple[int, str]:
        return advise(int(json.loads(member(body, "arguments"))["q"]))

    told = card(name, "EXECUTOR", actions={f"{name}.advise": READ}) | {"version": version}
    return Stranger(told, {"execute": execute})


@dataclass(slots=True)
class Books:
    """What was posted: the amounts in their order; a receipt is its number."""

    posted: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, body: str) -> str:
        with self.lock:
            self.posted.append(int(json.loads(member(body, "arguments"))["amount"]))
            return json.dumps({"output": {"number": len(self.posted)}, "side_effect": "PERFORMED"})


@dataclass(slots=True)
class Desk:
    """One desk of the gateway; its names are its own, so that several share a gateway."""

    client: Client
    name: str
    books: Books
    stack: ExitStack
    asked: int = 0
    replies: list[Any] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    """The registration of each version."""
    folder: Path = Path()
    """Where a test put what was recorded."""

    def hire(self, version: str, advise: Advise) -> Stranger:
        """Another version of the adviser comes to the desk."""
        stranger = self.stack.enter_context(serving(adviser(self.name, version, advise)))
        self.ids[version] = self.client.register(stranger.url)["component_id"]
        return stranger

    def hangs(self, version: str) -> threading.Event:
        """A version that never answers while the test runs; set once it was asked."""
        asked, over = threading.Event(), threading.Event()

        def advise(question: int) -> str:
            asked.set()
            over.wait(WAIT_S)
            return good(question)

        self.stack.callback(over.set)
        self.hire(version, advise)
        return asked

    def workflow(self, version: str = "1.0.0", *, amount: str = "input.q") -> str:
        return self.client.put_workflow(
            f"""
workflow: {self.name}
version: {version}
steps:
  - {{name: ask, role: execute, component: {self.name}, action: {self.name}.advise,
     input_mapping: {{q: input.q}}}}
  - {{name: post, role: execute, component: {self.name}-books, action: {self.name}.post,
     input_mapping: {{amount: {amount}}}}}
output: >-
  {{"answer": ask.output.answer, "receipt": post.output.number,
  "file": session.session_id, "lineage": session.lineage_id}}
"""
        )

    def serve(self, **fields: object) -> Any:
        """One caller, served to the end; kept."""
        self.asked += 1
        view = self.client.run(self.name, json.dumps({"q": self.asked}), **fields).json
        self.replies.append(view)
        return view

    def start(self, **over: object) -> str:
        """A rollout of the adviser's version 2.0.0, in stages of some dozens of sessions."""
        subject = {"kind": "component", "name": self.name, "candidate": "2.0.0"}
        reply = self.client.post("/v1/rollouts", {"subject": subject, **small(), **over})
        assert reply.status == 201, reply.text
        found: str = reply.json["rollout_id"]
        return found

    def rollout(self, rollout_id: str) -> Any:
        return self.client.get(f"/v1/rollouts/{rollout_id}").json

    def order(self, rollout_id: str, word: str) -> Any:
        return self.client.post(f"/v1/rollouts/{rollout_id}/{word}").json

    def serve_until(
        self, rollout_id: str, holds: Callable[[Any], bool], *, callers_max: int = 4_000
    ) -> Any:
        """Callers come until the rollout is so; fails with how it stands."""
        until = time.monotonic() + WAIT_S
        view = self.rollout(rollout_id)
        while not holds(view):
            assert self.asked < callers_max, view
            assert time.monotonic() < until, view
            self.serve()
            for _ in range(LOOKS):
                view = self.rollout(rollout_id)
                if holds(view):
                    break
        return view


def small() -> dict[str, object]:
    """Everybody takes part, a stage is left with a dozen candidates, time runs 10,000 times."""
    return {
        "time_scale": 0.0001,
        "alpha": 0.4,
        "canary": {"share": 0.5, "min_samples": 5, "min_ms": 1000, "prove": False},
        "shadow": {"share": 0.5, "min_samples": 5, "min_ms": 1000},
        "controlled": {"share": 0.5, "min_samples": 5, "min_ms": 1000, "steady_ms": 1000},
        "full": {"share": 1.0, "min_samples": 5, "min_ms": 1000, "prove": False},
        "success": {"margin": 0.55, "prove": True},
        "latency": {"quantile": 0.5, "margin": 1.0, "slack_ms": 60},
    }


@contextmanager
def desk(client: Client, name: str, advise: Advise = good) -> Iterator[Desk]:
    """A desk with its adviser 1.0.0 and its books."""
    books = Books()
    told = card(f"{name}-books", "EXECUTOR", actions={f"{name}.post": BOOK})
    with ExitStack() as stack:
        counting = stack.enter_context(serving(Stranger(told, {"execute": books.execute})))
        client.register(counting.url)
        one = Desk(client, name, books, stack)
        one.hire("1.0.0", advise)
        one.workflow()
        yield one
