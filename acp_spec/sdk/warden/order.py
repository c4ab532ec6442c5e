"""What the supervisor orders and what the warden reports, as JSON lines between two processes."""

import dataclasses
import json
from dataclasses import dataclass, field

SCRATCH = "/tmp"
"""Where a program sees its scratch directory when it has a file system of its own."""

SAMPLED = "sampled over the whole tree"

CGROUP_FIND = "auto"
CGROUP_NONE = "off"


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The limits as numbers; 0 = none, for `address_space_bytes` only."""

    memory_bytes: int
    cpu_ms: int
    wall_ms: int
    processes: int
    open_files: int
    file_bytes: int
    scratch_bytes: int
    address_space_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Order:
    """One run. `demanded`: guards without which the program must not start.

    `scratch`: a directory of the system's, used only where the program cannot have a file system
    of its own. `cgroup`: a parent directory for groups, or `auto`, or `off`.
    """

    argv: list[str]
    environment: dict[str, str]
    reads: list[str]
    bounds: Bounds
    network: bool
    demanded: list[str]
    scratch: str
    cgroup: str = CGROUP_FIND
    sample_ms: int = 50

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Order":
        told = json.loads(text)
        told["bounds"] = Bounds(**told["bounds"])
        return cls(**told)


@dataclass(kw_only=True)
class Ledger:
    """Guards that hold, with the mechanism, and those that do not, with the reason.

    Copied down by each fork: the last child, just before it becomes the program, has all of it.
    """

    held: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def hold(self, guard: str, mechanism: str) -> None:
        self.held[guard] = mechanism
        self.missing.pop(guard, None)

    def lack(self, guard: str, why: str) -> None:
        if guard not in self.held:
            self.missing[guard] = why


@dataclass(kw_only=True)
class Report:
    """How a run went. `problem` is set when the program never began, or, with `lost`, when nobody
    knows how it went on; `limit` names a guard.
    """

    exit_code: int | None = None
    signal: int | None = None
    limit: str = ""
    stopped: bool = False
    problem: str = ""
    lost: bool = False
    held: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    memory_peak_bytes: int = 0
    processes_peak: int = 0
    cpu_ms: int = 0
    wall_ms: int = 0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Report":
        return cls(**json.loads(text))
