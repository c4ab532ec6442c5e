"""The dashboard's files: types, tags, compression, policy, and nothing beside the table."""

import asyncio
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.transports import dashboard_files
from gateway.transports.dashboard_files import FILES
from gateway.transports.tests.asgi import Answer, Client

STATIC = Path(dashboard_files.__file__).parent / "dashboard/static"
PLACES = ["/dashboard", "/dashboard/", *(f"/dashboard/{name}" for name in FILES)]


def ask(client: Client, path: str, method: str = "GET", **headers: str) -> Answer:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = asyncio.run(client.ask(method, path, headers=given))
    assert answer.is_whole
    return answer


def test_every_built_file_is_served_and_every_served_file_is_built() -> None:
    assert {one.name for one in STATIC.iterdir()} == FILES.keys()


@pytest.mark.parametrize("path", PLACES)
def test_a_file_comes_with_its_type_its_tag_and_the_policy(client: Client, path: str) -> None:
    answer = ask(client, path)
    name = path.removeprefix("/dashboard").strip("/") or "index.html"
    assert (answer.status, answer.body) == (200, (STATIC / name).read_bytes())
    assert answer.headers["content-type"].encode() == FILES[name]
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = dict(
        one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert policy["require-trusted-types-for"] == "'script'"


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_what_a_browser_holds_already_is_not_sent_again(
    client: Client, path: str, coding: str
) -> None:
    first = ask(client, path, accept_encoding=coding)
    tag = first.headers["etag"]
    for held in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = ask(client, path, accept_encoding=coding, if_none_match=held)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert "content-length" not in again.headers
        assert "content-type" not in again.headers
    assert ask(client, path, accept_encoding=coding, if_none_match='"other"').status == 200


def test_a_file_is_compressed_for_those_who_take_that(client: Client) -> None:
    plain = ask(client, "/dashboard/app.js")
    packed = ask(client, "/dashboard/app.js", accept_encoding="br;q=1, GZIP;q=0.5")
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != plain.headers["etag"], "two forms, two tags"
    refused = ask(client, "/dashboard/app.js", accept_encoding="br, gzip; q=0")
    assert (refused.body, "content-encoding" in refused.headers) == (plain.body, False)


@pytest.mark.parametrize("path", PLACES)
def test_head_has_what_get_has(client: Client, path: str) -> None:
    """The server leaves the body out; what is said of it stays."""
    assert ask(client, path, "HEAD").headers == ask(client, path).headers


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/nothing.js",
        "/dashboard/..",
        "/dashboard/%2e%2e%2fdashboard_files.py",
        "/dashboard/..%2f..%2fpages.py",
        "/dashboard/static/app.js",
        "/dashboard/app.js/",
        "/dashboard//etc/passwd",
        "/dashboard/app.js%00",
        "/dashboard/APP.JS",
    ],
)
def test_nothing_beside_the_table_exists(client: Client, path: str) -> None:
    answer = ask(client, path)
    assert (answer.status, answer.reason) == (404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_files_are_only_read(client: Client, method: str) -> None:
    answer = ask(client, "/dashboard", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_page_names_no_other_host_and_no_script_or_style_of_its_own() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "//" not in page
    assert page.count("<script") == page.count('<script type="module" src="/dashboard/app.js">')
    assert "<style" not in page
    assert "style=" not in page


def test_nothing_is_read_before_the_dashboard_is_opened() -> None:
    """In a process of its own: what is kept would be in the cache of what reads the files."""
    code = (
        "import gateway.assembly.serving, gateway.transports.http_app\n"
        "from gateway.transports import dashboard_files\n"
        "assert dashboard_files.file.cache_info().currsize == 0\n"
        "assert dashboard_files.file('index.html').body.startswith(b'<!doctype html>')\n"
        "assert dashboard_files.file.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
