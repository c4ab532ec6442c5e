"""Reviewing over `/v1/reviews`: every source opened before a score, over kills, by several people.

Each reviewer holds a token of scope `annotate` and nothing else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from acp_spec.model.grounding import Review
from gateway.runtime.clock import SystemClock
from gateway.stores.reader import TrajectoryReader
from gateway.tests.access.conftest import GUARDED, made
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, serving
from gateway.tests.reviewing import HONEST, INVENTED, SECRET, TOKENS, Reviewer, teller
from gateway.tests.served import Served

Serve = Callable[..., Served]
PUT_UP_S = 30.0


class House:
    """A gateway with tokens on one data directory, over its restarts."""

    def __init__(self, serve: Serve, folder: Path, component: Stranger) -> None:
        self._serve = serve
        self.folder = folder
        self._component = component
        self._tokens = made(folder, TOKENS, SystemClock())
        self.served: Served | None = None

    @contextmanager
    def runs(self) -> Iterator[Callable[[str], Reviewer]]:
        """From a start to a kill -9; gives whoever holds the token of that name."""
        served = self._serve(data_dir=self.folder, environ=GUARDED)
        with Client(served.url) as client:

            def holder(name: str) -> Reviewer:
                return Reviewer(client, self._tokens[name].token)

            desk = holder("everything")
            desk.register(self._component.url)
            desk.put_workflow()
            yield holder
        served.kill()


@pytest.fixture
def house(serve: Serve, folder: Path) -> Iterator[House]:
    with serving(teller()) as component:
        yield House(serve, folder, component)


def _put_up(reviewer: Reviewer, count: int) -> list[dict[str, Any]]:
    """The queue once that many wait: records are made within a moment of the end."""
    deadline = monotonic() + PUT_UP_S
    while True:
        queue = reviewer.queue()
        if queue["waiting"] >= count:
            items: list[dict[str, Any]] = queue["items"]
            return items
        assert monotonic() < deadline, queue


def test_a_review_opens_every_source_over_a_kill_and_only_then_the_score_is_taken(
    house: House,
) -> None:
    with house.runs() as holder:
        ann = holder("ann")
        session_id = holder("everything").tell(f"{INVENTED} | {HONEST}")
        (item,) = _put_up(ann, 1)
        assert item["session_id"] == session_id
        assert {"CLAIMS", "UNJUDGED"} <= {one["doubt"] for one in item["why"]}
        assert item["sampling_probability"] == 1.0
        assert ann.post("/v1/reviews/next").json == {"session_id": session_id, "waiting": 1}
        first, second = ann.review(session_id)["claims"]
        assert (first["verdict"], second["verdict"]) == ("CONTRADICTED", "SUPPORTED")
        assert "says" not in first["sources"][0], "what a source says is told to who opens it"
        assert "reason" not in first, "and so is what the guard made of it"

        early = ann.scores(session_id, 0.0)
        assert (early.status, early.reason) == (400, "SOURCES_NOT_OPENED")
        assert early.json["error"]["code"] == "FAILED_PRECONDITION"
        assert early.json["error"]["details"]["count"] == 4
        assert early.json["error"]["details"]["unopened"][0]["source"] == 0

        told = ann.opens(session_id, 0, 0)
        assert (told["claim"]["sources"][0]["says"], told["unopened"]) == ("1250.1", 3)
        assert "reason" not in told["claim"]
        told = ann.opens(session_id, 0, 1)
        assert told["claim"]["sources"][1]["says"] == '"GBP"'
        assert "1,350.10" in told["claim"]["reason"]

    with house.runs() as holder:
        ann, bo = holder("ann"), holder("bo")
        assert ann.queue()["current"] == session_id
        assert ann.post("/v1/reviews/next").json["session_id"] == session_id
        view = ann.review(session_id)
        assert [one["opened"] for one in view["claims"][0]["sources"]] == [True, True]
        assert view["unopened"] == 2
        assert bo.review(session_id)["unopened"] == 4, "what ann opened bo has not seen"
        ann.opens(session_id, 1, 0)
        ann.opens(session_id, 1, 0)
        assert ann.scores(session_id, 0.0).status == 400
        ann.opens(session_id, 1, 1)
        scored = ann.scores(session_id, 0.0, "the first is made up")
        assert scored.status == 200, scored.text
        assert (scored.json["stand"], scored.json["waiting"]) == ("DONE", 0)
        desk = holder("everything")
        again = ann.scores(session_id, 0.0, "the first is made up")
        assert again.json["feedback_id"] == scored.json["feedback_id"]
        record = desk.get(f"/v1/sessions/{session_id}/trajectory").json
        (feedback,) = [row["feedback"] for row in record["feedback"]]
        assert (feedback["score"], feedback["sampling_probability"]) == (0.0, 1.0)
        assert (record["grounding"]["review"], record["grounding"]["label"]) == ("DONE", 0.0)
        audit = desk.get("/v1/audit").json["entries"]
        ours = [one for one in audit if one["subject"] == f"session:{session_id}"]
        assert [one["action"] for one in ours] == ["review.open"] * 4 + ["review.score"]
        assert len({one["actor"] for one in ours}) == 1
        _trained_on(house.folder, session_id, label=0.0)


def _trained_on(folder: Path, session_id: str, *, label: float) -> None:
    """The trainer's door lets the session in with its label, once it was delivered again."""
    deadline = monotonic() + PUT_UP_S
    while True:
        found = {one.session_id: one.grounding for one in TrajectoryReader(folder)}
        grounding = found.get(session_id)
        if grounding is not None:
            assert (grounding.review, grounding.label) == (Review.DONE, label)
            return
        assert monotonic() < deadline, found


def test_two_reviewers_are_given_different_sessions_and_both_may_judge_one(house: House) -> None:
    with house.runs() as holder:
        ann, bo, cy = holder("ann"), holder("bo"), holder("cy")
        sessions = {holder("everything").tell(INVENTED) for _ in range(2)}
        _put_up(ann, 2)
        first = ann.post("/v1/reviews/next").json["session_id"]
        second = bo.post("/v1/reviews/next").json["session_id"]
        assert {first, second} == sessions
        assert cy.post("/v1/reviews/next").json == {"session_id": "", "waiting": 2}
        held = {one["session_id"]: one.get("held_by", "") for one in bo.queue()["items"]}
        assert held[first] != ""
        assert held[second] == "", "one's own is not somebody else's"

        assert ann.post(f"/v1/reviews/{first}/skip").status == 200
        assert ann.queue()["current"] == ""
        assert cy.post("/v1/reviews/next").json["session_id"] == first
        ann.opens_all(first)
        cy.opens_all(first)
        assert ann.scores(first, 1.0).json["stand"] == "DONE"
        assert cy.scores(first, 0.0).json["stand"] == "WAITING", "they contradict: a third looks"
        assert cy.review(first)["score"] == 0.0
        assert "score" not in bo.review(first), "what others said is not shown"
        bo.opens_all(second)
        assert bo.scores(second, 0.0).json["stand"] == "DONE"
        assert bo.post("/v1/reviews/next").json["session_id"] == first
        bo.opens_all(first)
        assert bo.scores(first, 0.0).json == bo.scores(first, 0.0).json
        assert ann.scores(first, 0.5, "on second thoughts").status == 200
        record = holder("everything").get(f"/v1/sessions/{first}/trajectory").json
        assert sorted(row["feedback"]["score"] for row in record["feedback"]) == [0.0, 0.0, 0.5]


def test_what_was_skipped_comes_back_when_nothing_else_is_left(house: House) -> None:
    with house.runs() as holder:
        ann = holder("ann")
        session_id = holder("everything").tell(INVENTED)
        _put_up(ann, 1)
        ann.opens(session_id, 0, 0)
        ann.post(f"/v1/reviews/{session_id}/skip")
        assert ann.queue()["items"][0]["skipped"] is True
        assert ann.post("/v1/reviews/next").json["session_id"] == session_id
        assert ann.review(session_id)["unopened"] == 1, "what was opened stays opened"


def test_a_reviewer_sees_their_tenants_sessions_only_and_nothing_of_a_deleted_one(
    house: House,
) -> None:
    with house.runs() as holder:
        ann, desk = holder("ann"), holder("everything")
        session_id = desk.tell(INVENTED)
        _put_up(ann, 1)
        ann.opens(session_id, 0, 0)
        theirs = holder("stranger")
        assert theirs.queue()["waiting"] == 0
        path = f"/v1/reviews/{session_id}"
        for reply in (
            theirs.get(path),
            theirs.post(f"{path}/openings", {"claim": 0, "source": 0}),
            theirs.post(f"{path}/score", {"score": 1}),
            theirs.post(f"{path}/skip"),
            ann.get("/v1/reviews/01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ann.get("/v1/reviews/nonsense"),
        ):
            assert (reply.status, reply.reason) == (404, "NOT_FOUND")
        assert holder("submitter").get("/v1/reviews").status == 403
        for body in (
            {"claim": 1, "source": 0},
            {"claim": 0, "source": 2},
            {"claim": -1, "source": 0},
            {"claim": 0},
        ):
            refused = ann.post(f"{path}/openings", body)
            assert (refused.status, refused.reason) == (400, "INVALID_REQUEST"), body
        ann.opens_all(session_id)
        assert ann.scores(session_id, 1.5).status == 400
        assert ann.get("/v1/reviews?after=zz").status == 400

        assert desk.delete(f"/v1/sessions/{session_id}").status in (200, 204)
        assert ann.queue() == {"waiting": 0, "uniform": 0, "current": "", "items": [], "next": ""}
        assert ann.scores(session_id, 1.0).status == 404
        assert ann.post("/v1/reviews/next").json["session_id"] == ""
    with house.runs() as holder:
        assert holder("ann").queue()["waiting"] == 0


def test_what_is_secret_is_shown_to_no_reviewer(serve: Serve, folder: Path) -> None:
    with serving(teller(("password", "notes", "nothing"))) as component:
        house = House(serve, folder, component)
        with house.runs() as holder:
            ann = holder("ann")
            said = f"The password is {SECRET}. The note says so."
            session_id = holder("everything").tell(said)
            _put_up(ann, 1)
            ann.opens_all(session_id)
            (claim,) = ann.review(session_id)["claims"]
            secret, long, missing = claim["sources"]
            assert secret["says"] == "***"
            assert (long["found"], long["characters"], len(long["says"])) == ("CUT", 402, 300)
            assert missing["found"] == "NOWHERE"
            assert SECRET not in ann.get(f"/v1/reviews/{session_id}").text
            assert claim["text"] == "The password is ***. The note says so."


def test_a_system_says_what_its_users_said_and_nobody_speaks_as_another_reviewer(
    house: House,
) -> None:
    with house.runs() as holder:
        session_id = holder("everything").tell(HONEST)
        path = f"/v1/sessions/{session_id}/feedback"
        ann = holder("ann")
        assert ann.post(path, {"kind": "RATING", "score": 1}).status == 201
        (own,) = _said_of(holder("everything"), session_id)
        author = own["feedback"]["author"]
        assert "recorded_by" not in own

        forged = holder("bo").post(path, {"kind": "RATING", "score": 0, "author": author})
        assert (forged.status, forged.reason) == (403, "PERMISSION_DENIED")
        named = {"kind": "RATING", "score": 0, "author": "a customer"}
        assert ann.post(path, named).status == 201

    with house.runs() as holder:
        rows = _said_of(holder("everything"), session_id)
        assert {row["feedback"]["author"]: row.get("recorded_by") for row in rows} == {
            author: None,
            "a customer": author,
        }


def _said_of(desk: Reviewer, session_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = desk.get(f"/v1/sessions/{session_id}/trajectory").json["feedback"]
    return rows
