"""The records child: `python -m gateway.stores.records.child`, a process of its own.

Reads its order (one JSON line) from standard input, which its parent holds open: when that ends,
so does this process, and the kernel ends it as well when the parent is killed. Answers one ready
line, then serves ClickHouse's HTTP protocol on loopback over the embedded engine, and feeds the
store from the trajectory log - or feeds a cluster, and only tells how that goes.
"""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.dying import die_with_parent
from gateway.stores.records.embedded import Engine, EngineError
from gateway.stores.records.endpoint import Endpoint, endpoint_of
from gateway.stores.records.feeding import Feeding
from gateway.stores.records.http_face import HttpFace, Run, Statement
from gateway.stores.records.lock import StoreHeld, hold
from gateway.stores.records.order import Order, Ready
from gateway.telemetry.logs import configure_logs, get_log
from gateway.telemetry.masking import Masker

EXIT_OK, EXIT_HELD, EXIT_NO_EXTRA = 0, 6, 7
STORE_FOLDER: Final = "store"
MISSING: Final = "the records need: pip install 'acp-decision-gateway[records]'"
NICE: Final = 10
"""A tenth of the weight of a gateway and its components, where they want the same core."""
_THREADS: Final = Path("/proc/self/task")
_AUTOGROUP: Final = Path("/proc/self/autogroup")

log = get_log(__name__)


def main() -> int:
    """The process's exit code."""
    die_with_parent()
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_OK  # the parent was gone before it said anything
    order = msgspec.json.decode(line, type=Order)
    masker = Masker(order.secret_fields, order.secret_patterns)
    configure_logs(order.log_level, sys.stderr, masker=masker)
    directory = Path(order.records_dir)
    try:
        lock = hold(directory, wait_s=order.lock_wait_s)
    except StoreHeld as problem:
        log.error("records_store_held", what=str(problem))
        return EXIT_HELD
    try:
        return _serve(order, directory)
    except ImportError as problem:
        log.error("records_extra_missing", what=f"{problem}: {MISSING}")
        return EXIT_NO_EXTRA
    finally:
        os.close(lock)


def _serve(order: Order, directory: Path) -> int:
    engine = None if order.url else Engine(directory / STORE_FOLDER)
    feeding = Feeding(Path(order.log_dir), directory, order=order)
    face = HttpFace(_runner(engine), key=order.key, own=feeding.answer)
    threading.Thread(target=face.serve, name="http", daemon=True).start()
    threading.Thread(target=_until_orphaned, args=(feeding,), name="parent", daemon=True).start()
    if order.url:
        endpoint = endpoint_of(order.url, order.password)
    else:
        endpoint = Endpoint(host="127.0.0.1", port=face.port, password=order.key)
        feeding.prepare(endpoint)
    _yield_to_others()  # once it has started: somebody waits for that
    ready = Ready(port=face.port, pid=os.getpid())
    sys.stdout.buffer.write(msgspec.json.encode(ready) + b"\n")
    sys.stdout.buffer.flush()
    feeding.run(endpoint)
    face.close()
    if engine is not None:
        engine.close()
    return EXIT_OK


def _runner(engine: Engine | None) -> Run:
    def run(statement: Statement) -> bytes:
        if engine is None:
            raise EngineError("Code: 48. there is no store here: ask the cluster of records.url")
        return engine.run(
            statement.text,
            settings=statement.settings,
            database=statement.database,
            form=statement.form,
        )

    return run


def _yield_to_others() -> None:
    """Rows may come a little later, sessions may not: on a core that both want, others go first.

    The kernel may weigh sessions of processes as a whole. The gateway begins one for this process,
    and there the nice value says nothing to anybody outside: the whole has a value of its own.
    """
    own = max(NICE, os.nice(0))
    # Each thread has a value of its own, and gives it to new ones.
    for thread in _THREADS.iterdir() if _THREADS.is_dir() else ():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), own)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            _AUTOGROUP.write_text(str(NICE))


def _until_orphaned(feeding: Feeding) -> None:
    """Standard input ends when the parent says so, or is no more."""
    while sys.stdin.buffer.read(1 << 10):
        pass
    feeding.stop()


if __name__ == "__main__":
    sys.exit(main())
