"""Who asks the records for sessions at a least version gets them so, or STALE_STATE, never older.

The records follow the sessions by a moment, more while their store is down, and what a power cut
took is missing until it is healed. The version is the one that a session's view and its feedback
tell, `plan.execution.feedback`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import is_session_id
from gateway.engine.states import parse_version, version_met
from gateway.stores.records.embedded import among

if TYPE_CHECKING:
    from gateway.stores.records.reach import Answer

SESSIONS_MAX: Final = 1_000
"""Sessions named in one question; more is no question about sessions."""

SHOWN_MAX: Final = 5

Version = tuple[int, int, int]


class Asked(Protocol):
    """The records, which can be asked."""

    async def query(self, sql: str, *, rows: int = 0, timeout_ms: int = 0) -> "Answer": ...


async def must_have(records: Asked, min_versions: Mapping[str, str]) -> None:
    """Raises STALE_STATE where a session is not there at its version, or not there at all."""
    if not min_versions:
        return
    least = _parsed(min_versions)
    sql = f"SELECT session_id, state_version FROM v_sessions WHERE {among(least)}"
    answer = await records.query(sql, rows=SESSIONS_MAX)
    there = dict(msgspec.json.decode(answer.data, type=list[tuple[str, str]]))
    behind = [
        f"{name} ({there.get(name) or 'not there yet'})"
        for name, version in least.items()
        if not _is_met(there.get(name, ""), version)
    ]
    if behind:
        more = f" and {len(behind) - SHOWN_MAX} more" if len(behind) > SHOWN_MAX else ""
        message = (
            f"the records are behind: {', '.join(behind[:SHOWN_MAX])}{more}; ask again in a moment,"
            " or GET /v1/sessions/{id}?min_version="
        )
        raise AcpFailure(error(Reason.STALE_STATE, message))


def _parsed(min_versions: Mapping[str, str]) -> dict[str, Version]:
    if len(min_versions) > SESSIONS_MAX:
        raise invalid_request(f"min_versions: at most {SESSIONS_MAX} sessions")
    found: dict[str, Version] = {}
    for name, text in min_versions.items():
        version = parse_version(text)
        if not is_session_id(name):
            raise invalid_request(f"min_versions: {name!r} is no session id")
        if version is None:
            raise invalid_request(
                f"min_versions.{name}: {text!r} is not plan.execution.feedback, such as 3.12.0"
            )
        found[name] = version
    return found


def _is_met(text: str, least: Version) -> bool:
    version = parse_version(text)
    return version is not None and version_met(version, least)
