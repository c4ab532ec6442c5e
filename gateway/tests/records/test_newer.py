"""A gateway that was rolled back finds records of the newer one, and goes on."""

import json
from pathlib import Path

from gateway.stores.reader import TrajectoryReader
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.desk import desk, until_rows
from gateway.tests.forms import write


def test_it_starts_reads_all_others_and_says_how_many_it_cannot_read(tmp_path: Path) -> None:
    (line, *_) = max(write.present().glob("*.jsonl")).read_bytes().splitlines()
    known = json.loads(line)
    newer = known | {"schema_version": "2.0", "session_id": "01M3250V010000000000000099"}
    (old,) = (write.FOLDER / "0").glob("*.jsonl")
    oldest = json.loads(old.read_bytes().splitlines()[0])
    folder = tmp_path / "data" / "trajectories" / "2026-09-21"
    folder.mkdir(parents=True)
    lines = [json.dumps(one).encode() + b"\n" for one in (newer, known, oldest)]
    (folder / "0001.jsonl").write_bytes(b"".join(lines))

    with desk(tmp_path) as (_, client):
        session = client.open("desk", "1")
        client.ended(session)
        wanted = sorted((known["session_id"], oldest["session_id"], session))
        until_rows(
            client,
            "SELECT session_id FROM v_sessions ORDER BY session_id",
            [[one] for one in wanted],
        )
        counts = client.get("/v1/records/status").json["feed"]["counts"]
        assert counts["quarantined"] == 1
        for _ in patiently():
            if "acp_records_quarantined 1.0" in client.get("/metrics").text:
                break
    (aside,) = (tmp_path / "data" / "records" / "quarantine.jsonl").read_text().splitlines()
    assert "schema_version 2.0 is newer than 1.0" in json.loads(aside)["why"]
    reader = TrajectoryReader(tmp_path / "data")
    assert len(list(reader)) == 3
    assert reader.counts.quarantined == 1
