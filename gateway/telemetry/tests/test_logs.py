"""Logs: one JSON line per event, with ids, without secrets."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.logs import bound, configure_logs, get_log, mask
from gateway.telemetry.masking import DEFAULT, MASK


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Logging sent to a buffer, and put back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logs("info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_event_and_fields(written: io.StringIO) -> None:
    get_log("gateway.runtime").info("session_ended", status="FAILED", calls=4)
    (line,) = lines(written)
    assert line["event"] == "session_ended"
    assert (line["status"], line["calls"]) == ("FAILED", 4)
    assert (line["level"], line["logger"]) == ("info", "gateway.runtime")
    assert str(line["time"]).endswith("Z")


def test_bound_ids_are_on_every_line_inside_and_on_none_outside(written: io.StringIO) -> None:
    log = get_log("x")
    with bound(session_id="S1"), bound(lineage_id="S1.abc"):
        log.info("inside")
    log.info("outside")
    inside, outside = lines(written)
    assert (inside["session_id"], inside["lineage_id"]) == ("S1", "S1.abc")
    assert "session_id" not in outside


def test_the_lines_of_libraries_have_the_same_form(written: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").warning("port %d is taken", 80)
    assert lines(written)[0]["event"] == "port 80 is taken"


def test_debug_is_not_written_unless_asked_for(written: io.StringIO) -> None:
    get_log("x").debug("detail")
    assert written.getvalue() == ""


def test_a_cause_adds_its_traceback_with_secrets_masked(written: io.StringIO) -> None:
    get_log("x").error("broke", cause=ValueError("sent Bearer hunter2"))
    (line,) = lines(written)
    assert "ValueError" in str(line["traceback"])
    assert "hunter2" not in written.getvalue()


def test_a_value_of_many_lines_stays_on_one_line(written: io.StringIO) -> None:
    get_log("x").info("odd", text='a\nb"c')
    assert written.getvalue().count("\n") == 1
    assert lines(written)[0]["text"] == 'a\nb"c'


@pytest.mark.parametrize(
    "name", ["token", "callback_token", "Authorization", "api_key", "apikey", "password", "cookie"]
)
def test_what_is_named_like_a_secret_is_masked(name: str) -> None:
    assert mask(name, "hunter2") == MASK


def test_figures_are_not_secrets() -> None:
    assert mask("tokens", 12) == 12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("dial http://user:hunter2@bank/x", "dial http://user:***@bank/x"),
        ("listen http://127.0.0.1:8080/x", "listen http://127.0.0.1:8080/x"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_secrets_inside_text_are_masked_and_the_rest_is_kept(text: str, expected: str) -> None:
    assert DEFAULT.text(text) == expected


@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=8))
def test_no_bearer_token_comes_through(secret: str) -> None:
    assert secret not in DEFAULT.text(f"x Bearer {secret} y").replace("Bearer", "")


def test_a_long_value_is_cut(written: io.StringIO) -> None:
    get_log("x").info("long", text="a" * 100_000)
    assert len(written.getvalue()) < 3_000
