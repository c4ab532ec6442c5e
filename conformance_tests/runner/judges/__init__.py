"""Rules that a comparison cannot say: named here, used by cases as `judge`.

A judge looks at one exchange and the subject, and says what is wrong, nothing, or raises `NotSeen`:
there was nothing here that it could judge. Every public function of these modules is one.
"""

from inspect import signature
from types import FunctionType, ModuleType
from typing import Final

from conformance_tests.runner.judges import (
    attached,
    cards,
    errors,
    executions,
    heard,
    messages,
    records,
    roles,
)
from conformance_tests.runner.judges.judging import Judge, NotSeen

__all__ = ["JUDGES", "Judge", "NotSeen"]


def _of(module: ModuleType) -> dict[str, Judge]:
    return {
        name: function
        for name, function in vars(module).items()
        if isinstance(function, FunctionType)
        and function.__module__ == module.__name__
        and not name.startswith("_")
        and list(signature(function).parameters) == ["seen", "subject"]
    }


JUDGES: Final[dict[str, Judge]] = {
    name: judge
    for module in (attached, cards, errors, executions, heard, messages, records, roles)
    for name, judge in _of(module).items()
}
