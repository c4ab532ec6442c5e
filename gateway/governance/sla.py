"""The contract's section `sla`: what a workflow demands of each component, and what a breach does.

A figure that is not stated is not limited. Latency is service time, from sending to the answer; the
gateway's own queue never counts against a component.
"""

import enum
from dataclasses import dataclass
from typing import Final

from acp_spec.codec.yaml_tree import Mapping
from gateway.expressions.field_reader import Field, FieldReader

COMPONENT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}"
KEYS: Final = (
    "max_latency_ms", "latency_quantile", "min_success_rate", "max_fallback_rate", "window_ms",
    "min_samples", "on_breach",
)  # fmt: skip
DEMANDS: Final = ("max_latency_ms", "min_success_rate", "max_fallback_rate")

LATENCY_MS_MAX: Final = 3_600_000
"""An hour: what takes longer is an operation, whose time is its own."""
WINDOW_MS_LEAST, WINDOW_MS_MOST = 1_000, 24 * 3_600_000
SAMPLES_MOST: Final = 10_000


class OnBreach(enum.Enum):
    """What is done while a component is outside its SLA.

    ALARM: it is told, nothing else. REFUSE: its calls are refused, but for probes; the workflow
    decides as after any failed call. FALLBACK: a session that would call it falls back instead.
    """

    ALARM = "ALARM"
    REFUSE = "REFUSE"
    FALLBACK = "FALLBACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sla:
    """The demands on one component. 0 ms, rate 0 and rate 1 limit nothing.

    `latency_quantile`: the share of calls that must keep `max_latency_ms`. A judgement needs
    `min_samples` within `window_ms`.
    """

    component: str
    max_latency_ms: int = 0
    latency_quantile: float = 0.95
    min_success_rate: float = 0.0
    max_fallback_rate: float = 1.0
    window_ms: int = 60_000
    min_samples: int = 20
    on_breach: OnBreach = OnBreach.ALARM


def read(reader: FieldReader, found: Field) -> tuple[Sla, ...]:
    """The demands by component, in the order of the file."""
    slas = []
    for name, field in reader.fields(found.value, found.path, known=None).items():
        _check_name(reader, field, name=name)
        slas.append(_read_one(reader, field, component=name))
    return tuple(slas)


def _check_name(reader: FieldReader, field: Field, *, name: str) -> None:
    if not name or len(name) > 128:
        message = f"{name!r} is not a component's name"
        reader.problem(field.key, field.path, message=message)


def _read_one(reader: FieldReader, found: Field, *, component: str) -> Sla:
    fields = reader.fields(found.value, found.path, known=KEYS)
    entries = found.value.entries if isinstance(found.value, Mapping) else ()
    if len(fields) == len(entries) and not fields.keys() & set(DEMANDS):
        reader.fault(found, f"this demands nothing: state one of {', '.join(DEMANDS)}")
    default = Sla(component=component)
    return Sla(
        component=component,
        max_latency_ms=reader.integer(
            fields.get("max_latency_ms"), 0, least=1, most=LATENCY_MS_MAX
        ),
        latency_quantile=reader.number(
            fields.get("latency_quantile"), default.latency_quantile, least=0.5, most=1
        ),
        min_success_rate=reader.number(fields.get("min_success_rate"), 0.0, least=0, most=1),
        max_fallback_rate=reader.number(fields.get("max_fallback_rate"), 1.0, least=0, most=1),
        window_ms=reader.integer(
            fields.get("window_ms"), default.window_ms, least=WINDOW_MS_LEAST, most=WINDOW_MS_MOST
        ),
        min_samples=reader.integer(
            fields.get("min_samples"), default.min_samples, least=1, most=SAMPLES_MOST
        ),
        on_breach=reader.choice(fields.get("on_breach"), OnBreach) or default.on_breach,
    )
