"""Writes records of the present form beside those that are kept.

`python -m gateway.tests.forms.write`, for whoever changed the shape of a trajectory. While its
version is not released the folder gains a file and its `shape.json` is the new one. A released
version's folder is closed: raise `SCHEMA_VERSION` first, and where a field changed its meaning or
went away, add a form to `gateway.stores.forms`.
"""

import json
import sys
from pathlib import Path
from typing import Final

import msgspec

from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory
from gateway.engine import replay
from gateway.engine.tests import histories
from gateway.engine.trajectories import trajectory
from gateway.stores.records.tests.sessions import whole

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[2]
RELEASED: Final = ("0",)
"""Closed: what is in these folders never changes. Add a version here when it is released."""

SHAPE_FILE: Final = "shape.json"


def present() -> Path:
    """The folder of the present form."""
    return FOLDER / SCHEMA_VERSION


def shape() -> str:
    """The present shape of a trajectory, as `make gen` wrote it, without its comments."""
    told = json.loads((ROOT / "acp_spec" / "schema" / "Trajectory.json").read_text())
    return json.dumps(_bare(told), indent=1, sort_keys=True) + "\n"


def _bare(value: object) -> object:
    if isinstance(value, dict):
        return {
            name: _bare(part)
            for name, part in value.items()
            if not (name == "description" and isinstance(part, str))
        }
    return [_bare(part) for part in value] if isinstance(value, list) else value


def records() -> list[Trajectory]:
    """Sessions that say something in every part, as this version writes them."""
    played = []
    for name in sorted(histories.kept()):
        history = histories.read(name)
        state, _ = replay.play([entry.event for entry in history.entries], history.parsed())
        played.append(trajectory(state))
    return [whole(1, comments=("#late", "so")), *played]


def main() -> int:
    """The process's exit code."""
    folder = present()
    if SCHEMA_VERSION in RELEASED:
        print(f"{SCHEMA_VERSION} is released: raise SCHEMA_VERSION first")  # noqa: T201
        return 1
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("*.jsonl"))) + 1
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in records())
    (folder / f"{number:03}.jsonl").write_bytes(lines)
    (folder / SHAPE_FILE).write_text(shape())
    return 0


if __name__ == "__main__":
    sys.exit(main())
