"""From cases to what is planned: one entry per binding and variant, settled before any call.

A case that is about something the target does not declare becomes one entry that is not applicable;
one that is declared but cannot be sent becomes one that is not tested. Both keep their reason.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from conformance_tests.messages.tree import Text, Value
from conformance_tests.runner.library import Case
from conformance_tests.runner.requirements import Level
from conformance_tests.runner.results import Outcome, Result
from conformance_tests.runner.subject import NotDeclared, Untestable

LABEL_MAX = 40


class Declares(Protocol):
    """What a case asks of the target's declarations."""

    def need(self, what: str) -> None:
        """Raises NotDeclared."""

    def source(self, name: str) -> list[tuple[str, Value]]:
        """What there is of this kind, with labels. Raises NotDeclared, Untestable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One case in one variant over one binding; `settled` when it will not be run."""

    case: Case
    binding: str
    label: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    settled: Outcome | None = None
    reason: str = ""

    @property
    def variant(self) -> str:
        return f"{self.binding}[{self.label}]" if self.label else self.binding

    @property
    def id(self) -> str:
        return f"{self.case.id}@{self.variant}" if self.variant else self.case.id

    def result(self, outcome: Outcome, *, reason: str = "") -> Result:
        """A result of this entry in which nothing was checked."""
        return Result(
            case=self.case.id,
            variant=self.variant,
            requirement=self.case.requirement,
            outcome=outcome,
            level=level_of(self.case),
            checks_planned=self.case.checks,
            reason=reason,
        )


def level_of(case: Case) -> Level:
    return case.requirement.level


def plan(cases: Iterable[Case], declared: Declares, *, bindings: Sequence[str]) -> list[Planned]:
    """Everything that a run owes a result."""
    return [entry for case in cases for entry in _of_case(case, declared, bindings=bindings)]


def _of_case(case: Case, declared: Declares, *, bindings: Sequence[str]) -> Iterator[Planned]:
    over = [binding for binding in case.over if binding in bindings]
    if not over:
        reason = f"the target was not given over {' or '.join(case.over)}"
        yield Planned(
            case=case, binding=case.over[0], settled=Outcome.NOT_APPLICABLE, reason=reason
        )
        return
    try:
        for what in case.needs:
            declared.need(what)
        variants = list(_variants(case, declared))
    except NotDeclared as lack:
        settled, reason = Outcome.NOT_APPLICABLE, str(lack)
    except Untestable as lack:
        settled, reason = Outcome.NOT_TESTED, str(lack)
    else:
        for binding in over:
            for label, values in variants:
                yield Planned(case=case, binding=binding, label=label, values=values)
        return
    yield Planned(case=case, binding=over[0], settled=settled, reason=reason)


def _variants(case: Case, declared: Declares) -> Iterator[tuple[str, dict[str, Value]]]:
    """The product of the case's axes; a case without axes is one variant without a label."""
    axes: list[list[tuple[str, str, Value]]] = []
    for name, source in case.each.items():
        if isinstance(source, list):
            labels = _labels(source)
            axes.append([(label, name, value) for label, value in zip(labels, source, strict=True)])
        else:
            found = declared.source(str(source))
            axes.append([(label, name, value) for label, value in found])
    for chosen in itertools.product(*axes):
        yield ",".join(label for label, _, _ in chosen), {name: value for _, name, value in chosen}


def _labels(values: list[Value]) -> list[str]:
    """One short text per value, numbered where the beginnings are equal."""
    labels = [_label(value) for value in values]
    return [
        f"{label}#{number}" if labels.count(label) > 1 else label
        for number, label in enumerate(labels, 1)
    ]


def _label(value: Value) -> str:
    """A value as part of an id; its own `name`, if it has one."""
    if isinstance(value, dict) and "name" in value:
        return str(value["name"])
    text = value.data.decode("utf-8", "replace") if isinstance(value, Text) else str(value)
    return text[:LABEL_MAX]
