"""Who may come in: hosts, origins, tokens, scopes, and other people's things."""

import asyncio

import pytest

from gateway.config.settings import Settings
from gateway.runtime.tokens import TokenCreated, TokenRequest
from gateway.transports.auth import Gate, bearer, host_name, served_hosts
from gateway.transports.http_app import HttpApp
from gateway.transports.tests.asgi import Client
from gateway.transports.tests.in_memory import CALL_BACK_TOKEN, House

OPEN = {"workflow": "hotline", "input": {"query": "hello"}}


def token(house: House, *scopes: str, tenant: str = "default", names: tuple[str, ...] = ()) -> str:
    request = TokenRequest(scopes=scopes, tenant=tenant, names=names)
    created: TokenCreated = asyncio.run(house.services.tokens.create(request))
    return created.token


def holder(app: HttpApp, text: str) -> Client:
    return Client(app, {"authorization": f"Bearer {text}"})


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "localhost:65535"])
def test_a_configured_host_is_served_on_any_port(client: Client, host: str) -> None:
    assert asyncio.run(client.ask("GET", "/healthz", headers={"host": host})).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "localhost:8080@evil.example",
        "evil.example#localhost",
        "localhost:",
        "localhost:80a",
        "[::1",
        "127.0.0.1.nip.example:8080",
    ],
)
def test_a_foreign_host_is_refused_also_while_tokens_are_off(client: Client, host: str) -> None:
    answer = asyncio.run(client.ask("GET", "/healthz", headers={"host": host}))
    assert (answer.status, answer.reason) == (403, "PERMISSION_DENIED")
    assert "http.allowed_hosts" in answer.message


def test_a_request_without_a_host_is_a_bad_request(client: Client) -> None:
    answer = asyncio.run(client.ask("GET", "/healthz", headers={"host": ""}))
    assert answer.status == 400


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:9999", "https://ops.evil"]
)
def test_a_foreign_origin_is_refused(client: Client, origin: str) -> None:
    answer = asyncio.run(client.ask("POST", "/v1/sessions", body=OPEN, headers={"origin": origin}))
    assert (answer.status, answer.reason) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("origin", ["http://localhost:8080", "https://ops", "HTTPS://OPS"])
def test_its_own_and_configured_origins_may_call(client: Client, origin: str) -> None:
    answer = asyncio.run(client.ask("POST", "/v1/sessions", body=OPEN, headers={"origin": origin}))
    assert answer.status == 201


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer ",
        "Bearer wrong",
        "Bearer acp_000000000000_x",
        "Basic dXNlcjpwYXNz",
        "Bearer " + "x" * 5000,
        "acp_",
    ],
)
def test_without_a_valid_token_nothing_is_served(guarded: HttpApp, authorization: str) -> None:
    headers = {"authorization": authorization} if authorization else {}
    answer = asyncio.run(Client(guarded).ask("GET", "/v1/sessions", headers=headers))
    assert (answer.status, answer.reason) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_is_known_by_every_character(house: House, guarded: HttpApp) -> None:
    good = token(house, "submit")
    assert asyncio.run(holder(guarded, good).ask("GET", "/v1/sessions")).status == 200
    for wrong in (good[:-1], good + "A", good[:-1] + ("A" if good[-1] != "A" else "B")):
        assert asyncio.run(holder(guarded, wrong).ask("GET", "/v1/sessions")).status == 401


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/sessions", "submit"),
        ("GET", "/v1/components", "operate"),
        ("PUT", "/v1/workflows/hotline/versions/1.0.0", "operate"),
        ("POST", "/v1/sessions/S/feedback", "annotate"),
        ("DELETE", "/v1/sessions/S", "admin"),
        ("POST", "/v1/components", "component"),
        ("POST", "/v1/tokens", "admin"),
        ("GET", "/metrics", "operate"),
    ],
)
def test_each_route_needs_its_scope(
    house: House, guarded: HttpApp, method: str, path: str, scope: str
) -> None:
    others = {"submit", "operate", "component", "annotate", "admin"} - {scope, "admin"}
    if scope == "component":
        others -= {"operate"}
    answer = asyncio.run(holder(guarded, token(house, *others)).ask(method, path))
    assert (answer.status, answer.reason) == (403, "PERMISSION_DENIED")
    assert scope in answer.message
    allowed = asyncio.run(holder(guarded, token(house, scope)).ask(method, path))
    assert allowed.status not in (401, 403)


def test_pages_that_tell_nothing_of_anybody_need_no_token(guarded: HttpApp) -> None:
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert asyncio.run(Client(guarded).ask("GET", path)).status == 200, path


def test_a_foreign_tenants_session_does_not_exist(house: House, guarded: HttpApp) -> None:
    scopes = ("submit", "annotate", "admin")
    mine = holder(guarded, token(house, *scopes, tenant="mine"))
    theirs = holder(guarded, token(house, *scopes, tenant="theirs"))

    async def story() -> None:
        opened = await mine.ask("POST", "/v1/sessions", body=OPEN)
        place = opened.headers["location"]
        lineage = opened.json["lineage_id"]
        assert (await mine.ask("GET", place)).status == 200
        for method, path, body in [
            ("GET", place, b""),
            ("GET", f"{place}/events", b""),
            ("GET", f"{place}/trajectory", b""),
            ("GET", f"/v1/lineage/{lineage}", b""),
            ("POST", f"{place}/cancel", b""),
            ("POST", f"{place}/finish", b"{}"),
            ("POST", f"{place}/feedback", b'{"kind": "RATING", "score": 1}'),
            ("POST", f"{place}/steps", b'{"step_type": "PLAN"}'),
            ("DELETE", place, b""),
        ]:
            answer = await theirs.ask(method, path, body=body)
            assert (answer.status, answer.reason) == (404, "NOT_FOUND"), (method, path)
        assert (await theirs.ask("GET", "/v1/sessions")).json == {}
        assert len((await mine.ask("GET", "/v1/sessions")).json["sessions"]) == 1

    asyncio.run(story())


def test_a_component_token_sees_and_moves_only_its_own_names(
    house: House, guarded: HttpApp
) -> None:
    operator = holder(guarded, token(house, "operate"))
    ledger = holder(guarded, token(house, "component", names=("ledger",)))

    async def story() -> None:
        own = await ledger.ask("POST", "/v1/components", body={"url": "http://ledger:1"})
        assert own.status == 201
        forbidden = await ledger.ask("POST", "/v1/components", body={"url": "http://cards:1"})
        assert forbidden.status == 403
        other = await operator.ask("POST", "/v1/components", body={"url": "http://cards:1"})
        for step in ("heartbeat", "drain"):
            place = f"{own.headers['location']}/{step}"
            assert (await ledger.ask("POST", place, body=b"{}")).status == 200
            foreign = f"{other.headers['location']}/{step}"
            assert (await ledger.ask("POST", foreign, body=b"{}")).status == 404
        assert (await ledger.ask("DELETE", other.headers["location"])).status == 404
        assert (await ledger.ask("DELETE", own.headers["location"])).status == 204

    asyncio.run(story())


def test_the_call_back_takes_the_calls_own_token_and_no_api_token(
    house: House, guarded: HttpApp
) -> None:
    done = {"output": {"ok": True}}
    refused = asyncio.run(
        holder(guarded, token(house, "admin")).ask("POST", "/v1/operations/c:complete", body=done)
    )
    assert refused.status == 401
    taken = asyncio.run(
        holder(guarded, CALL_BACK_TOKEN).ask("POST", "/v1/operations/c:complete", body=done)
    )
    assert taken.status == 200
    assert bytes(house.sessions.completed["c"].output) == b'{"ok": true}'


def test_a_revoked_or_expired_token_ends_at_once(house: House, guarded: HttpApp) -> None:
    tokens = house.services.tokens
    revoked = asyncio.run(tokens.create(TokenRequest(scopes=("submit",))))
    expiring = asyncio.run(tokens.create(TokenRequest(scopes=("submit",), days=1)))
    assert tokens.verify(revoked.token) is not None
    asyncio.run(tokens.revoke(revoked.info.token_id))
    assert tokens.verify(revoked.token) is None
    house.clock.advance(86_400_000 - 1)
    assert tokens.verify(expiring.token) is not None
    house.clock.advance(1)
    assert tokens.verify(expiring.token) is None


def test_the_hosts_served_are_the_configured_ones_the_bind_and_loopback() -> None:
    settings = Settings.model_validate(
        {"http": {"bind": "[::1]:0", "allowed_hosts": ["gateway.example"]}}
    )
    assert set(served_hosts(settings)) == {"gateway.example", "localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize(
    ("host", "name"),
    [("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:1", "a"), ("a", "a"), ("a:b", ""), (":1", "")],
)
def test_the_name_in_a_host_header_is_what_stands_before_the_port(host: str, name: str) -> None:
    assert host_name(host) == name


def test_the_scheme_of_an_authorization_header_is_read_in_any_case() -> None:
    assert bearer("bearer x") == bearer("BEARER  x ") == "x"
    assert bearer("Token x") == ""


def test_a_gate_remembers_few_host_values(house: House) -> None:
    gate = Gate(house.services.tokens, required=False, hosts=("localhost",))
    for port in range(1000):
        gate.check_host(b"localhost:%d" % port)
    assert len(gate._good_hosts) <= 64
