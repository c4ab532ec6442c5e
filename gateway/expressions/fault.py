"""What is wrong with an expression, and where in its text."""

from typing import Final

from acp_spec.model.errors import Reason


class ExpressionError(ValueError):
    """An expression that may not run, or whose run failed.

    `column` counts characters of the expression's text from 1. `reason` is INVALID_REQUEST for a
    text that is refused when it is compiled, CONTRACT_VIOLATION for an evaluation that failed.
    """

    def __init__(
        self, message: str, column: int, *, reason: Reason = Reason.INVALID_REQUEST
    ) -> None:
        self.message: Final = message
        self.column: Final = column
        self.reason: Final = reason
        super().__init__(f"{message} (column {column})")


def violation(message: str, column: int = 1) -> ExpressionError:
    """An evaluation that failed: the data broke what the workflow's author expected of it."""
    return ExpressionError(message, column, reason=Reason.CONTRACT_VIOLATION)
