"""Rules over errors: the fields, the table of SPEC section 5, what a refusal must say."""

import re

from acp_spec.bindings.errors import ERRORS, HTTP_OF_CODE
from acp_spec.model.errors import Code, Reason
from conformance_tests.messages.tree import (
    Tree,
    plain,
)
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject


def _error(seen: Exchange) -> Tree:
    if seen.answer.error is None:
        raise NotSeen("no error with a body")
    return seen.answer.error


def error_has_its_fields(seen: Exchange, subject: Subject) -> str | None:
    error = seen.answer.error
    if error is None:
        return "there is no JSON body with `error`"
    lacking = [name for name in ("code", "reason", "message") if name not in error]
    return f"the error has no {', '.join(lacking)}" if lacking else None


def code_is_canonical(seen: Exchange, subject: Subject) -> str | None:
    code = _error(seen).get("code")
    return None if code is None or code in Code.__members__ else f"{code!r} is no canonical code"


def reason_is_upper_snake(seen: Exchange, subject: Subject) -> str | None:
    reason = str(_error(seen).get("reason", "X"))
    return None if re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", reason) else f"reason {reason!r}"


def code_of_the_row(seen: Exchange, subject: Subject) -> str | None:
    error = _error(seen)
    if error.get("reason") not in Reason.__members__ or "code" not in error:
        return None
    row = ERRORS[Reason[str(error["reason"])]]
    return None if error["code"] == row.code.value else f"{error['reason']} with {error['code']}"


def status_of_the_table(seen: Exchange, subject: Subject) -> str | None:
    error = _error(seen)
    if error.get("reason") in Reason.__members__:
        wanted = ERRORS[Reason[str(error["reason"])]].http
    elif error.get("code") in Code.__members__:
        wanted = HTTP_OF_CODE[Code[str(error["code"])]]
    else:
        return None
    if seen.answer.status == wanted:
        return None
    said = f"{error.get('reason')} ({error.get('code')})"
    return f"{said} with status {seen.answer.status}, not {wanted}"


def message_says_something(seen: Exchange, subject: Subject) -> str | None:
    error = _error(seen)
    return "the message is empty" if error.get("message", "x") == "" else None


def not_a_server_fault(seen: Exchange, subject: Subject) -> str | None:
    answer = seen.answer
    if answer.status >= 500:
        return f"status {answer.status} for a client's fault"
    stated = answer.code if answer.binding == "attach" else answer.grpc
    if stated in {"INTERNAL", "UNKNOWN", "DATA_LOSS"}:
        return f"{answer.binding} status {stated} for a client's fault"
    return None


def refusal_did_nothing(seen: Exchange, subject: Subject) -> str | None:
    stated = _error(seen).get("side_effect")
    return None if stated == "NONE" else f"side effect {stated} ({seen.answer.said})"


def trailer_is_error_body(seen: Exchange, subject: Subject) -> str | None:
    answer = seen.answer
    if answer.error is None:
        return f"{answer.grpc} without a readable acp-error-bin"
    return (
        None if answer.error.get("code") == answer.grpc else f"status {answer.grpc}, {answer.code}"
    )


def names_versions(seen: Exchange, subject: Subject) -> str | None:
    error = _error(seen)
    said = f"{error.get('message')} {plain(error.get('details', None))}"
    listed = subject.card.get("acp_versions")
    for version in listed if isinstance(listed, list) else ["1.0"]:
        if str(version) not in said:
            return f"{version} is not named in {said!r}"
    return None


def retry_time_means_retryable(seen: Exchange, subject: Subject) -> str | None:
    error = _error(seen)
    if "retry_after_ms" not in error:
        return None
    return None if error.get("retryable") else f"{error.get('reason')} has retry_after_ms only"


def keeps_secrets(seen: Exchange, subject: Subject) -> str | None:
    if not seen.secrets:
        raise NotSeen("no request had a secret")
    said = str(plain(_error(seen).get("details", None)))
    return next((f"details hold {secret!r}" for secret in seen.secrets if secret in said), None)
