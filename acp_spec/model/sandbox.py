"""What holds a program that serves an action: the words a card offers and a contract demands.

A card's `sandbox` is what the component says that its own system gives; nobody outside can see it
happen. `lacking` is the whole comparison. How a program is held is `acp_spec.sdk.sandbox`.
"""

from collections.abc import Iterable

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.enums import Word


class Guard(Word):
    """One thing a program cannot do, or cannot have more of."""

    MEMORY = "MEMORY"
    """Resident memory of the whole tree, at worst noticed one sampling interval late."""
    MEMORY_EXACT = "MEMORY_EXACT"
    """The same, held by the kernel: not one page over it is ever given."""
    CPU_TIME = "CPU_TIME"
    WALL_CLOCK = "WALL_CLOCK"
    PROCESSES = "PROCESSES"
    OUTPUT_SIZE = "OUTPUT_SIZE"
    OPEN_FILES = "OPEN_FILES"
    FILE_SIZE = "FILE_SIZE"
    SCRATCH_SIZE = "SCRATCH_SIZE"
    """All files of the scratch directory together."""
    ADDRESS_SPACE = "ADDRESS_SPACE"
    """Only on demand: it stops programs that reserve much and use little (Java, Node)."""
    NETWORK = "NETWORK"
    """No socket reaches anything outside the sandbox."""
    READ_ONLY_FILES = "READ_ONLY_FILES"
    """Only listed places are seen, and only the scratch directory can be written."""
    OWN_USER = "OWN_USER"
    NO_NEW_PRIVILEGES = "NO_NEW_PRIVILEGES"
    SYSTEM_CALLS = "SYSTEM_CALLS"
    """Calls that could lift another guard (namespaces, mounts, tracing, keys) are refused."""
    CLEAN_ENVIRONMENT = "CLEAN_ENVIRONMENT"
    NO_INHERITED_FILES = "NO_INHERITED_FILES"
    WHOLE_TREE = "WHOLE_TREE"
    """Nothing the program started outlives it."""


USUAL: tuple[Guard, ...] = tuple(
    guard for guard in Guard if guard not in (Guard.MEMORY_EXACT, Guard.ADDRESS_SPACE)
)
"""What is demanded where nobody says: everything but exact memory, which needs a delegated control
group, and address space, which stops Java and Node at their start.
"""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an action's card says of it; 0 = not limited.

    `guards` are words of `Guard`, as text: a reader that does not know one lets it count for
    nothing, which is the safe reading.
    """

    memory_bytes: Count = 0
    cpu_ms: Count = 0
    wall_ms: Count = 0
    processes: Count = 0
    guards: tuple[str, ...] = ()


def lacking(demanded: Iterable[Guard], offered: Sandbox | None) -> tuple[Guard, ...]:
    """The guards that are demanded and not offered, in the order demanded."""
    given = set(offered.guards) if offered is not None else set()
    return tuple(guard for guard in demanded if guard.value not in given)
