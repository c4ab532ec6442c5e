"""A desk to review at: a component that says what it is told to, sources to open, reviewers.

Whatever a session's input says between ` | ` becomes a claim on the account's balance and currency.
What is wrong in it is put up for review.
"""

import json
from time import monotonic
from typing import Any, Final

from gateway.runtime.tokens import TokenRequest
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, Stranger, card

WORKFLOW: Final = """
workflow: told
version: 1.0.0
steps:
  - {name: plan, role: plan, component: teller}
  - {name: act, role: execute, plan: plan}
  - {name: judge, role: reflect, component: teller, input_mapping: {goal: input.query}}
output: judge.output
"""
SECRET: Final = "hunter2-and-more"
BALANCE: Final = json.dumps(
    {"output": {"balance": 1250.1, "currency": "GBP", "password": SECRET, "notes": "n" * 400}}
)
HONEST: Final = "The balance is £1,250.10."
INVENTED: Final = "The balance is £1,350.10."
PUT_UP_S: Final = 30.0
"""The record is made within a moment of the end; a busy machine takes longer."""
SOURCES: Final = ("balance", "currency")
TOKENS: Final = {
    "everything": TokenRequest(scopes=("admin",)),
    "ann": TokenRequest(scopes=("annotate",), label="ann"),
    "bo": TokenRequest(scopes=("annotate",), label="bo"),
    "cy": TokenRequest(scopes=("annotate",), label="cy"),
    "stranger": TokenRequest(scopes=("annotate", "operate"), tenant="theirs"),
    "submitter": TokenRequest(scopes=("submit",)),
}


def teller(sources: tuple[str, ...] = SOURCES) -> Stranger:
    """Says as claims whatever the goal of the session is."""

    def plan(body: str) -> str:
        return json.dumps({"plan": {"sub_goals": [{"id": "look", "action": "ledger.look"}]}})

    def reflect(body: str) -> str:
        asked = json.loads(body)
        (call,) = asked["calls"]
        pointers = [f"/calls/{call['call_id']}/output/{name}" for name in sources]
        claims = [{"text": text, "sources": pointers} for text in asked["goal"].split(" | ")]
        return json.dumps(
            {"verdict": "ACCEPT", "output": {"answer": asked["goal"]}, "claims": claims}
        )

    answers = {"plan": plan, "execute": lambda _: BALANCE, "reflect": reflect}
    roles = ("PLANNER", "EXECUTOR", "REFLECTOR")
    return Stranger(card("teller", *roles, actions={"ledger.look": READ}), answers)


class Reviewer:
    """`/v1` as one holder of a token uses it; without one, as anybody on this machine."""

    def __init__(self, client: Client, token: str = "") -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> Reply:
        return self._client.call("GET", path, body=None, **self._headers)

    def post(self, path: str, body: object = None) -> Reply:
        return self._client.post(path, body, **self._headers)

    def delete(self, path: str) -> Reply:
        return self._client.call("DELETE", path, body=None, **self._headers)

    def put_workflow(self) -> None:
        path = "/v1/workflows/told/versions/1.0.0"
        headers = {"content_type": "application/yaml", **self._headers}
        reply = self._client.call("PUT", path, body=WORKFLOW.encode(), **headers)
        assert reply.status in (200, 201), reply.text

    def register(self, url: str) -> None:
        body = {"url": url, "transport": "HTTP", "lease_seconds": 3600}
        assert self.post("/v1/components", body).status in (200, 201)

    def tell(self, said: str) -> str:
        """A session that has ended having said this."""
        body = json.dumps({"workflow": "told", "input": {"query": said}})
        headers = {"prefer": "wait=30", **self._headers}
        reply = self._client.post("/v1/sessions", body, **headers)
        assert reply.json["status"] == "SUCCEEDED", reply.text
        return str(reply.json["session_id"])

    def put_up(self, said: str) -> str:
        """A session that has said this, once it waits for a review."""
        session_id = self.tell(said)
        deadline = monotonic() + PUT_UP_S
        while self.get(f"/v1/reviews/{session_id}").status != 200:
            assert monotonic() < deadline, f"{session_id} was not put up"
        return session_id

    def queue(self) -> Any:
        return self.get("/v1/reviews").json

    def review(self, session_id: str) -> Any:
        reply = self.get(f"/v1/reviews/{session_id}")
        assert reply.status == 200, reply.text
        return reply.json

    def opens(self, session_id: str, claim: int, source: int) -> Any:
        body = {"claim": claim, "source": source}
        reply = self.post(f"/v1/reviews/{session_id}/openings", body)
        assert reply.status == 200, reply.text
        return reply.json

    def opens_all(self, session_id: str) -> None:
        for claim in self.review(session_id)["claims"]:
            for source in claim["sources"]:
                self.opens(session_id, claim["claim"], source["source"])

    def scores(self, session_id: str, score: float, comment: str = "") -> Reply:
        body = {"score": score, "comment": comment}
        return self.post(f"/v1/reviews/{session_id}/score", body)
