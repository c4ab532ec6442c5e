"""What may go wrong, by name, and how often: the table that a simulation draws from.

`WIRE` strikes one attempt; `WORLD` strikes everything that is open at the moment. Shares are chosen
so that three sessions in ten meet a fault and each kind at least one in a hundred; a test counts.
"""

from typing import Final

WIRE: Final[tuple[tuple[float, str], ...]] = (
    (0.0041, "refused connection"),
    (0.0036, "reset before work"),
    (0.0036, "reset after work"),
    (0.0033, "lost request"),
    (0.0033, "lost answer"),
    (0.0039, "late answer"),
    (0.0044, "slow"),
    (0.0077, "error before work"),
    (0.0044, "error after work"),
    (0.0044, "push-back"),
    (0.0033, "garbage"),
    (0.0047, "duplicate request"),
    (0.0036, "duplicate answer"),
    (0.0036, "stream cut"),
    (0.0044, "retries spent"),
)
"""Share of attempts, kind."""

OPERATION: Final[tuple[tuple[float, str], ...]] = (
    (0.20, "operation forgotten"),
    (0.20, "operation failed"),
    (0.15, "operation silent"),
)
"""Share of long operations, kind."""

WORLD: Final[dict[str, float]] = {
    "crash": 0.11,
    "power cut": 0.11,
    "graceful restart": 0.11,
    "clock jump": 0.11,
    "stopped process": 0.09,
    "disk full": 0.12,
    "sync failure": 0.09,
    "slow disk": 0.10,
    "trajectories full": 0.13,
    "component down": 0.18,
    "component replaced": 0.10,
    "component drained": 0.10,
    "rollout": 0.25,
    "lease expired": 0.11,
    "cancels ignored": 0.75,
}
"""Kinds that strike a whole world at a moment of its own, and the chance of each in one world."""

KINDS: Final = (*(k for _, k in WIRE), *(k for _, k in OPERATION), *WORLD)
