"""What a program is, what it may use, and which guards must hold: values, checked when built."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acp_spec.model.sandbox import USUAL, Guard, Sandbox

MIB = 1024 * 1024

ALWAYS = frozenset(USUAL)
"""What is demanded unless it is waived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use. Each number has a default, because each runs out."""

    memory_bytes: int = 512 * MIB
    """Resident memory of the whole tree (R11)."""
    cpu_ms: int = 5_000
    """CPU time of the whole tree: as much as the wall clock gives one core."""
    wall_ms: int = 5_000
    """R06's time of a tool."""
    processes: int = 256
    """Processes and threads at once: a Java machine on sixteen cores starts some fifty."""
    output_bytes: int = 4 * MIB
    """Standard output, and as much standard error: what a gateway accepts in an answer."""
    open_files: int = 256
    """Of each process."""
    file_bytes: int = 64 * MIB
    scratch_bytes: int = 64 * MIB
    """Of the whole scratch directory. It lies in memory, beside `memory_bytes`."""
    address_space_bytes: int = 0
    """0 = none."""
    network: bool = False
    waived: frozenset[Guard] = frozenset()
    """Guards that this program may run without, where the system cannot give them."""
    also: frozenset[Guard] = frozenset()
    """Guards demanded beyond `ALWAYS`: MEMORY_EXACT."""

    def __post_init__(self) -> None:
        for name in ("memory_bytes", "cpu_ms", "wall_ms", "processes", "output_bytes"):
            assert getattr(self, name) > 0, f"{name} must be over 0"
        for name in ("open_files", "file_bytes", "scratch_bytes"):
            assert getattr(self, name) > 0, f"{name} must be over 0"
        assert self.address_space_bytes >= 0, "address_space_bytes must not be negative"
        assert not self.waived & self.also, "a guard is both waived and demanded"

    @property
    def demanded(self) -> frozenset[Guard]:
        """The guards without which the program does not start."""
        asked = ALWAYS | self.also
        if self.network:
            asked -= {Guard.NETWORK}
        if self.address_space_bytes:
            asked |= {Guard.ADDRESS_SPACE}
        return asked - self.waived

    def on_the_card(self) -> Sandbox:
        """What a card says: what is demanded, so that it is the same on every system."""
        return Sandbox(
            memory_bytes=self.memory_bytes,
            cpu_ms=self.cpu_ms,
            wall_ms=self.wall_ms,
            processes=self.processes,
            guards=tuple(sorted(guard.value for guard in self.demanded)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command, and what it may read beside the system's own /usr, /bin, /lib, /etc and /opt.

    What it reads must be readable for everybody: it runs as a user that owns nothing. It begins
    in its scratch directory; `environment` comes on top of a PATH, a HOME and a UTF-8 locale.
    """

    command: tuple[str, ...]
    reads: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.command, "a program needs a command"
        for path in self.reads:
            assert path.is_absolute(), f"{path} must be an absolute path"
            assert path != Path("/"), "a program that reads everything is in no sandbox"
