"""A hundred thousand sessions in the records: every page still shows what a page shows, by key.

They are made by SQL inside a records child that the gateway uses as a cluster: a gateway would take
minutes to run them. What an answer costs is measured in `make bench-records`.
"""

from collections.abc import Iterator
from time import time
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from gateway.stores.records.store import client_of
from gateway.stores.records.tests.childhood import KEY, Child, patiently
from gateway.tests.dashboard.conftest import Looking
from gateway.tests.e2e.client import Client
from gateway.tests.served import Served, serve_gateway

MANY = 100_000
FAILS_EVERY = 1_000
MADE = """
INSERT INTO sessions (session_id, opened_at, ended_at, duration_ms, tenant, workflow, status,
    succeeded, error_reason, attempts, calls, call_actions, call_components, call_versions,
    call_roles, call_reused, call_waits_ms, call_errors, call_steps, call_ms, took_part, sequence)
SELECT leftPad(toString(number), 26, '0'),
    fromUnixTimestamp64Milli(toInt64({now_ms} - 1800000 + number * 10)) AS opened, opened, 40,
    'default', 'flow.' || toString(number % 20) || '@1.0.0',
    if(number % {fails} > 0, 'SUCCEEDED', 'FAILED'), number % {fails} > 0,
    if(number % {fails} > 0, '', 'TIMEOUT'), 1, 1, ['act'],
    ['component.' || toString(number % 30)], ['1.0.0'], ['EXECUTE'], [false], [1],
    [if(number % {fails} > 0, '', 'TIMEOUT')], ['act'], [30],
    ['component.' || toString(number % 30)], 1
FROM numbers({many})
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("many")
    with Child(folder / "cluster") as cluster:
        client = client_of(cluster.endpoint)
        now_ms = int(time() * 1000)
        client.command(MADE.format(now_ms=now_ms, many=MANY, fails=FAILS_EVERY))
        client.close()
        url = f"http://default:{KEY}@127.0.0.1:{cluster.endpoint.port}"
        one = serve_gateway(
            data_dir=folder / "data", log_file=folder / "log", environ={"ACP_RECORDS_URL": url}
        )
        with Client(one.url) as asking:
            for _ in patiently():
                if asking.get("/v1/dashboard/sessions", limit="1").status == 200:
                    break
        yield one
        one.stop()


def test_the_overview_counts_them_all_and_leads_to_the_few_that_failed(looking: Looking) -> None:
    look = looking()
    page = look.at("#/", "Overview")
    expect(page.get_by_text("100,000 opened")).to_be_visible()
    page.get_by_role("link", name="100 failed", exact=True).click()
    look.is_at("Sessions")
    expect(page.get_by_label("Status")).to_have_value("FAILED")
    expect(page.locator("tbody tr")).to_have_count(50)
    look.follows("Older")
    expect(page.get_by_role("heading", name="Older", exact=True)).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(50)


def test_pages_go_on_by_key_and_none_holds_more_than_fifty_rows(looking: Looking) -> None:
    look = looking()
    page = look.at("#/sessions", "Sessions")
    newest = MANY - 1
    for step in range(4):
        at = f"{newest - 50 * step:026d}"
        expect(page.get_by_role("link", name=at)).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(50)
        look.follows("Older")
    asked = [parse_qs(urlsplit(one).query) for one in look.requests if "/sessions?" in one]
    assert {one["limit"][0] for one in asked} == {"50"}
    look.at(f"#/sessions?workflow=flow.7&after={MANY // 2:026d}", "Sessions")
    expect(page.locator("tbody tr").first).to_contain_text("flow.7")
    expect(page.locator("tbody tr")).to_have_count(50)
