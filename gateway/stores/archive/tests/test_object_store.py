"""The stores an archive may lie in: one contract for a directory and for S3, and their faults."""

import io
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from gateway.stores.archive.object_store import (
    DirectoryStore,
    ExtraMissing,
    ObjectStore,
    RemoteStore,
    StoreUnreachable,
    is_directory,
    open_store,
)
from gateway.stores.archive.tests.attic import Attic, FrailStore, places_with
from gateway.stores.copies.exporting import PlaceTaken
from gateway.stores.copies.manifest import MANIFEST
from gateway.stores.copies.tests.copying import exported, imported, write
from gateway.stores.records.tests.sessions import line, name_of, whole

KEYS = {"key": "testing", "secret": "testing"}


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Options that reach an S3 of this machine, on a free port, with one bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {**KEYS, "endpoint_url": f"http://{host}:{port}"}
    import s3fs

    s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("bucket")
    yield options
    server.stop()


@pytest.fixture(params=["directory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "directory":
        return open_store(str(tmp_path / "archive"), {})
    options: dict[str, str] = request.getfixturevalue("s3")
    return open_store(f"s3://bucket/{tmp_path.name}", options)


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "given"
    path.write_bytes(data)
    return path


def test_what_is_put_is_found_read_replaced_and_deleted(store: ObjectStore, tmp_path: Path) -> None:
    assert store.names("g") == []
    for data in (b"first", b"second"):
        store.put("g/date=2026-01-01/one", _file(tmp_path, data))
        read = io.BytesIO()
        store.fetch("g/date=2026-01-01/one", read)
        assert read.getvalue() == data
    store.put("g/date=2026-01-02/two", _file(tmp_path, b""))
    store.put("other/three", _file(tmp_path, b"3"))
    assert store.names("g") == ["g/date=2026-01-01/one", "g/date=2026-01-02/two"]
    store.delete("g/date=2026-01-01/one")
    store.delete("g/date=2026-01-01/one")
    assert store.names("g") == ["g/date=2026-01-02/two"]
    with pytest.raises(FileNotFoundError):
        store.fetch("g/date=2026-01-01/one", io.BytesIO())


def test_copies_of_sessions_go_to_s3_and_come_back(s3: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)), line(whole(2)))
    place = open_store(f"s3://bucket/{tmp_path.name}/copy", s3)
    made = exported(tmp_path / "from", FrailStore(place))
    assert place.names("") == sorted([MANIFEST, *(one.stored.name for one in made.files)])
    assert imported(place, tmp_path / "into").imported == made.sessions == 2
    with pytest.raises(PlaceTaken, match="already"):
        exported(tmp_path / "from", place)
    with pytest.raises(PlaceTaken, match="not empty"):
        exported(tmp_path / "from", open_store(f"s3://bucket/{tmp_path.name}", s3))


def test_files_leave_for_s3_and_deletion_reaches_them_there(
    s3: dict[str, str], tmp_path: Path
) -> None:
    place = open_store(f"s3://bucket/{tmp_path.name}", s3)
    attic = Attic(tmp_path, store=FrailStore(place))
    attic.write(whole(1, comments=("secret-1",)), whole(2))
    attic.write(whole(3))
    attic.archive()
    assert attic.cold_lines() == [line(whole(1, comments=("secret-1",))), line(whole(2))]
    attic.archive(erase=(name_of(1),))
    here = tmp_path / "downloaded"
    for name in place.names(attic.gateway_id):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        with (here / name).open("wb") as target:
            place.fetch(name, target)
    assert len(list(here.rglob("*.*"))) == 4
    assert not list(places_with(here, b"secret-1"))
    assert attic.cold_lines() == [line(whole(2))]


class _Broken(BaseHTTPRequestHandler):
    """An S3 that answers each request with a 500."""

    def answer(self) -> None:
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def broken_s3() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_store_that_answers_500_or_not_at_all_leaves_every_file_where_it_is(
    broken_s3: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    for url in (broken_s3, gone):
        attic = Attic(tmp_path / url[-5:])
        attic.write(whole(1))
        attic.write(whole(2))
        attic.store = FrailStore(open_store("s3://bucket/x", {**KEYS, "endpoint_url": url}))
        with pytest.raises(StoreUnreachable, match="the archive's store"):
            attic.archive()
        assert len(attic.hot_names()) == 2


def test_a_directory_that_is_full_keeps_the_log_and_leaves_no_half_object(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.write(*(whole(number) for number in range(40)))
    attic.write(whole(99))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            DirectoryStore(attic.archive_dir).put("g/x", attic.log_dir / attic.hot_names()[0])
        with pytest.raises(OSError, match="File too large"):
            attic.archive()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(attic.hot_names()) == 2
    assert not [path for path in attic.archive_dir.rglob("*") if path.is_file()]
    attic.archive()
    assert len(attic.cold_lines()) == 40


def test_a_place_that_no_library_here_reaches_says_what_to_install() -> None:
    with pytest.raises(ExtraMissing, match="nothing://x"):
        open_store("nothing://x", {})
    assert not is_directory("s3://b")
    assert is_directory("")
    assert is_directory("file:///x")
    assert isinstance(open_store("file:///tmp/x", {}), DirectoryStore)
    assert isinstance(open_store("memory://x", {}), RemoteStore)
