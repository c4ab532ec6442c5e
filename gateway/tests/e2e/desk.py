"""A gateway with one workflow over one component, and questions to its records."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Answer, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

WORKFLOW = """
workflow: desk
version: 1.0.0
steps: [{name: act, role: execute, component: clerk, action: serve, input_mapping: {x: input}}]
output: act.output
"""


@contextmanager
def desk(
    folder: Path,
    *flags: str,
    action: Mapping[str, object] = READ,
    execute: Answer = lambda _: '{"output": 1}',
) -> Iterator[tuple[Served, Client]]:
    """A gateway with one workflow over one component; `action`: what its card says of it."""
    clerk = Stranger(card("clerk", "EXECUTOR", actions={"serve": action}), {"execute": execute})
    served = serve_gateway(*flags, data_dir=folder / "data", log_file=folder / "log", environ={})
    try:
        with Client(served.url) as client, serving(clerk):
            client.register(clerk.url)
            client.put_workflow(WORKFLOW)
            yield served, client
    finally:
        served.stop()


def rows(client: Client, sql: str) -> Any:
    """The rows of an answer, waiting while the records' process is started or started again."""
    for _ in patiently():
        reply = client.post("/v1/records/query", {"sql": sql})
        if reply.status != 503:
            assert reply.status == 200, reply.text
            return reply.json["rows"]
    raise AssertionError("patience has an end")


def until_rows(client: Client, sql: str, wanted: object) -> None:
    """What ended is seen once the feed has brought it."""
    for _ in patiently():
        if rows(client, sql) == wanted:
            break
