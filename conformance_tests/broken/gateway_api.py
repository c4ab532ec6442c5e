"""Broken gateways for SPEC section 6: components, workflows, sessions, events, steps, feedback."""

from dataclasses import replace

from conformance_tests.broken import rules
from conformance_tests.broken.epoch import EPOCH
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.gateway_process import SECRET
from conformance_tests.broken.http_layer import Forward, Reply, Request, Rule
from conformance_tests.broken.meant import (
    SESSIONS,
    at,
    below,
    component,
    holds,
    opens,
    opens_with,
    reads,
    registers,
    under,
)
from conformance_tests.broken.rules import (
    after,
    answered,
    drop,
    error,
    instead,
    put,
    saying,
)

NOT_FOUND = error("NOT_FOUND", "NOT_FOUND", http=404)
SOMEBODY = {"component_id": "cmp_somebody", "card": {"name": "somebody", "version": "1.0.0"}}


def gone_after_restart(when: rules.When) -> rules.Maker:
    """What is read so is not found any more once the gateway was restarted."""

    def make() -> Rule:
        begun = EPOCH.number

        async def rule(request: Request, forward: Forward) -> Reply:
            reply = await forward(request)
            return NOT_FOUND if when(request) and EPOCH.number > begun and reply.ok else reply

        return rule

    return make


def of_label(kept: str, say: Reply) -> rules.Maker:
    """Sessions opened with this label are read so after a restart."""

    def make() -> Rule:
        begun = EPOCH.number
        own: set[str] = set()

        async def rule(request: Request, forward: Forward) -> Reply:
            reply = await forward(request)
            if opens(request) and request.tree.get("labels") == {"kept": kept}:
                own.add(str(reply.tree.get("session_id")))
            session = request.path.rpartition("/")[2]
            meant = reads(request) and session in own and EPOCH.number > begun
            return say if meant else reply

        return rule

    return make


async def _drain_does_nothing(request: Request, forward: Forward) -> Reply:
    if not request.path.endswith("/drain"):
        return await forward(request)
    path = request.path.removesuffix("/drain")
    return await forward(replace(request, method="GET", path=path, body=b""))


def one_id_for_all() -> Rule:
    """Replicas get the id of the first."""
    first: dict[str, str] = {}

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        tree = reply.tree
        if not registers(request) or not reply.ok:
            return reply
        card = tree["card"]
        own = first.setdefault(f"{card['name']}@{card['version']}", tree["component_id"])
        return reply.with_tree({**tree, "component_id": own})

    return rule


def remembers_removed() -> Rule:
    """A removed registration is still read."""
    removed: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        if under("DELETE", "/v1/components/")(request):
            removed.add(request.path)
        gone = component(request) and request.path in removed
        return saying(SOMEBODY) if gone else await forward(request)

    return rule


COMPONENTS = (
    BrokenGateway(
        requirement="GWY-001",
        does="answers a registration with 200",
        because=r"status: expected status 201, got 200",
        client=rules.status(lambda r: registers(r) and r.tree.get("lease_seconds") == 60, 200),
    ),
    BrokenGateway(
        requirement="GWY-002",
        does="registers any kind of URL",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=instead(holds(registers, b"ftp://"), saying(SOMEBODY, http=201)),
    ),
    BrokenGateway(
        requirement="GWY-003",
        does="tells a credential",
        because=rf"lacks: the answer holds '{SECRET}'",
        client=after(component, put("labels", {"auth": SECRET}), ok=True, sees=b"component_id"),
    ),
    BrokenGateway(
        requirement="GWY-004",
        does="forgets registrations when it is restarted",
        because=r"ok: expected success, got HTTP 404",
        client=gone_after_restart(component),
    ),
    BrokenGateway(
        requirement="GWY-005",
        does="does not renew a lease",
        because=r"after: lease/expires_at: 2000",
        client=after(
            lambda r: r.path.endswith("/heartbeat"),
            put("lease/expires_at", "2000-01-01T00:00:00Z"),
            ok=True,
        ),
    ),
    BrokenGateway(
        requirement="GWY-006",
        does="does not drain",
        because=r"any_of: .*got success .*SUCCEEDED|at: count: expected 0, got 1",
        client=rules.plainly(_drain_does_nothing),
    ),
    BrokenGateway(
        requirement="GWY-007",
        does="takes two replicas for one",
        because=r"at: component_id: is .* too",
        client=one_id_for_all,
    ),
    BrokenGateway(
        requirement="GWY-008",
        does="reads what was removed",
        because=r"status: expected status 404, got 200",
        client=remembers_removed,
    ),
)


def _version_path(version: str) -> rules.When:
    return lambda r: r.path.startswith("/v1/workflows/") and r.path.endswith(f"/{version}")


def stores_what_is_wrong() -> Rule:
    """A file that was refused is read back."""
    refused: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.method == "PUT" and not reply.ok and b"steps: []" in request.body:
            refused.add(request.path)
        if request.method == "GET" and request.path in refused:
            return saying({"name": "w", "version": "1.0.0"})
        return reply

    return rule


WORKFLOWS = (
    BrokenGateway(
        requirement="GWY-010",
        does="stores other bytes under a version",
        because=r"status: expected status 409, got 200",
        client=instead(
            lambda r: r.method == "PUT" and b"# changed" in r.body,
            saying({"name": "w", "version": "1.0.0"}),
        ),
    ),
    BrokenGateway(
        requirement="GWY-011",
        does="activates nothing",
        because=r"at: active is absent",
        client=after(
            lambda r: r.method == "GET" and _version_path("1.0.0")(r), drop("active"), ok=True
        ),
    ),
    BrokenGateway(
        requirement="GWY-012",
        does="stores a file under another path",
        because=r"status: expected a 4xx, got success",
        client=instead(
            lambda r: r.method == "PUT" and _version_path("3.0.0")(r),
            saying({"name": "w", "version": "3.0.0"}, http=201),
        ),
    ),
    BrokenGateway(
        requirement="GWY-013",
        does="tells no column",
        because=r"at: problems/0/column is absent",
        client=after(
            holds(at("POST", "/v1/workflows:validate"), b"actoin"), drop("problems/0/column")
        ),
    ),
    BrokenGateway(
        requirement="GWY-014",
        does="stores what is not valid",
        because=r"status: expected status 404, got 200",
        client=stores_what_is_wrong,
    ),
)


def still_there() -> Rule:
    """A deleted session is read as it was."""
    views: dict[str, Reply] = {}
    deleted: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if opens(request) and reply.status == 200:
            views[f"{SESSIONS}/{reply.tree.get('session_id')}"] = reply
        if request.method == "DELETE":
            deleted.add(request.path)
        if reads(request) and request.path in deleted:
            return views.get(request.path, reply)
        return reply

    return rule


def _without_query(name: str) -> rules.Maker:
    async def rule(request: Request, forward: Forward) -> Reply:
        parts = [p for p in request.query.split("&") if p and not p.startswith(f"{name}=")]
        meant = f"{name}=" in request.query and "0.0.7" in f"0.0.7{request.query}"
        return await forward(replace(request, query="&".join(parts)) if meant else request)

    return lambda: rule


OPENINGS = (
    BrokenGateway(
        requirement="GWY-020",
        does="tells no lineage",
        because=r"at: lineage_id is absent",
        client=after(opens, drop("lineage_id"), status_is=201),
    ),
    BrokenGateway(
        requirement="GWY-021",
        does="answers an ended session with 201",
        because=r"status: expected status 200, got 201",
        client=rules.status(
            lambda r: opens(r) and r.tree.get("input") == {"a": 1} and "session_key" not in r.tree,
            201,
        ),
    ),
    BrokenGateway(
        requirement="GWY-022",
        does="takes another body under a session_key",
        because=r"status: expected status 409, got 200",
        client=answered(
            lambda r, came: opens(r) and "session_key" in r.tree and came.status == 409,
            saying({"session_id": "0" * 26, "status": "RUNNING"}),
        ),
    ),
    BrokenGateway(
        requirement="GWY-023",
        does="opens a session of no workflow",
        because=r"status: expected a 4xx, got success",
        client=instead(
            opens_with(workflow="no-such-workflow-at-all"),
            saying({"session_id": "0" * 26, "status": "RUNNING"}, http=201),
        ),
    ),
    BrokenGateway(
        requirement="GWY-024",
        does="tells no steps",
        because=r"at: steps/0 is absent",
        client=after(reads, drop("steps"), ok=True),
    ),
    BrokenGateway(
        requirement="GWY-025",
        does="does not look at min_version",
        because=r"status: expected status 409, got 200",
        client=_without_query("min_version"),
    ),
    BrokenGateway(
        requirement="GWY-026",
        does="has a status of its own",
        because=r"at: status: expected one of RUNNING .* got 'OPEN'",
        client=after(opens_with(mode="MANUAL"), put("status", "OPEN"), status_is=201),
    ),
    BrokenGateway(
        requirement="GWY-027",
        does="shows the first page again",
        because=r"at: sessions: expected 1 items, got 2",
        client=_without_query("after"),
    ),
    BrokenGateway(
        requirement="GWY-028",
        does="loses a running session when it is killed",
        because=r"ok: expected success, got HTTP 404",
        client=of_label("running", NOT_FOUND),
    ),
    BrokenGateway(
        requirement="GWY-029",
        does="has another reason for a passed deadline",
        because=r"at: error/reason: expected 'TIMEOUT', got 'TOO_LATE'",
        client=after(
            opens_with(deadline_ms=400), put("error/reason", "TOO_LATE"), sees=b'"TIMEOUT"'
        ),
    ),
    BrokenGateway(
        requirement="GWY-030",
        does="answers a cancel with 200",
        because=r"status: expected status 202, got 200",
        client=rules.status(below("cancel"), 200),
    ),
    BrokenGateway(
        requirement="GWY-031",
        does="cancels nothing at components",
        because=r"at: count: 0 is less than 1",
        stage=instead(
            lambda r: "/calls/" in r.path, saying({"state": "STOPPED", "side_effect": "NONE"})
        ),
    ),
    BrokenGateway(
        requirement="GWY-032",
        does="keeps a deleted session's payloads",
        because=r"lacks: the answer holds 'secret",
        client=still_there,
    ),
    BrokenGateway(
        requirement="GWY-033",
        does="finds a session that does not exist",
        because=r"status: expected status 404, got 200",
        client=instead(
            lambda r: reads(r) and r.path.endswith("QAZ"),
            saying({"session_id": "01M8M0EQM7000A57GG0J2C6QAZ", "status": "RUNNING"}),
        ),
    ),
)

GATEWAYS = (*COMPONENTS, *WORKFLOWS, *OPENINGS)
