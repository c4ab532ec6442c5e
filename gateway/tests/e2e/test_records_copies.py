"""Sessions leave one gateway and come into another, whose records then answer over them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from gateway.cli.records import app as records_command
from gateway.stores.archive.tests.attic import places_with
from gateway.stores.reader import TrajectoryReader
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.e2e.test_archive import WORKFLOW, ended, until_rows
from gateway.tests.served import Served, serve_gateway

TAGGED = "SELECT session_id, has(comment_tags, 'late') FROM v_sessions ORDER BY session_id"


@contextmanager
def gateway(folder: Path) -> Iterator[tuple[Served, Client]]:
    folder.mkdir(exist_ok=True)
    served = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    try:
        with Client(served.url) as client:
            yield served, client
    finally:
        served.stop()


@contextmanager
def serving_desk(folder: Path) -> Iterator[Client]:
    clerk = Stranger(
        card("clerk", "EXECUTOR", actions={"serve": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    with gateway(folder) as (_, client), serving(clerk):
        client.register(clerk.url)
        client.put_workflow(WORKFLOW)
        yield client


def acp(*words: str) -> Result:
    return CliRunner().invoke(records_command, [*words, "--json"])


def told(*words: str) -> Any:
    result = acp(*words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def import_told(copy: Path, into: Path) -> tuple[int, int, int]:
    report = told("import", str(copy), "--into", str(into / "data"))
    return report["imported"], report["there_already"], report["erased"]


def test_records_of_another_gateway_answer_over_what_was_imported(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first, second = tmp_path / "first", tmp_path / "second"
    with serving_desk(here) as client:
        sessions = sorted(ended(here, client, f"text-{n}") for n in range(3))
        made = told("export", "--from", str(here / "data"), "--to", str(first))
        assert (made["sessions"], made["files"]) == (3, 1)
        assert acp("export", "--from", str(here / "data"), "--to", str(first)).exit_code == 4

        feedback = {"kind": "RATING", "score": 2, "comment": "#late"}
        assert client.post(f"/v1/sessions/{sessions[1]}/feedback", feedback).status < 300
        for _ in patiently():
            if list(places_with(here / "data" / "trajectories", b"#late")):
                break
        assert client.delete(f"/v1/sessions/{sessions[0]}").status < 300
        # Also beside a gateway that runs; an import has to wait until it does not.
        made = told(
            *("export", "--from", str(here / "data"), "--to", str(second), "--format", "parquet")
        )
        assert (made["sessions"], made["erased"]) == (2, 1)
        busy = acp("import", str(second), "--into", str(here / "data"))
        assert (busy.exit_code, "runs on" in busy.stderr) == (5, True), busy.output
        assert "--gateway" not in busy.stderr, "an option that it has not"

    assert import_told(first, there) == (3, 0, 0)
    assert import_told(second, there) == (1, 1, 0)
    assert import_told(first, here) == (0, 2, 1), "the deleted one does not come back"
    gone = told("forget", sessions[2], "--from", str(there / "data"))
    assert gone == {"forgotten": [sessions[2]], "not_there": []}
    own = acp("forget", sessions[1], "--from", str(here / "data"))
    assert (own.exit_code, "acp sessions delete" in own.stderr) == (2, True), own.output
    assert import_told(first, there) == (0, 2, 1)
    del sessions[2]
    with gateway(there) as (_, client):
        until_rows(client, TAGGED, [[one, one == sessions[1]] for one in sessions])
        assert client.get(f"/v1/sessions/{sessions[1]}/trajectory").status == 404  # as the docs say
    read = {one.session_id: len(one.feedback) for one in TrajectoryReader(there / "data")}
    assert read == {one: int(one == sessions[1]) for one in sessions}


def test_wrong_words_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "trajectories").mkdir()
    into = ("--into", str(tmp_path / "into"))
    for code, said, words in (
        (3, "takes the data directory", ("export", "--from", "/nowhere", "--to", "x")),
        (2, "inside the data directory", ("export", "--from", ".", "--to", "./trajectories/x")),
        (2, "no time such as", ("export", "--from", ".", "--to", "../x", "--since", "noon")),
        (2, "neither jsonl", ("export", "--from", ".", "--to", "../x", "--format", "csv")),
        (2, "NAME=VALUE", ("export", "--from", ".", "--to", "../x", "--option", "key")),
        (2, "is it the folder of an export", ("import", ".", *into)),
    ):
        given = (word.replace(".", str(tmp_path), 1) if "." in word else word for word in words)
        result = acp(*given)
        assert (result.exit_code, said in result.stderr) == (code, True), result.output
    assert not list(places_with(tmp_path, b"session_id"))
    assert not (tmp_path / "into").exists()
