"""The dashboard's data over HTTP: `/v1/dashboard`. The gateway's own, not part of ACP v1.

Everybody sees the sessions of their own tenant only. Every parameter is checked here, and a wrong
one is named; what it means is the runtime's.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.routes import Route
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import SessionStatus
from acp_spec.model.grounding import Review
from acp_spec.model.ids import is_session_id
from gateway.runtime.dashboard.answers import (
    DashboardComponent,
    DashboardLive,
    DashboardOverview,
    DashboardSessions,
    DashboardWorkflow,
    GoldenSignals,
)
from gateway.runtime.dashboard.one_session import DashboardSession
from gateway.transports.http_request import HttpRequest, count, query_values
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

WINDOW_MS_DEFAULT: Final = 86_400_000
WINDOW_MS_MIN: Final = 60_000
WINDOW_MS_MAX: Final = 366 * 86_400_000
TIME_MS_MAX: Final = 7_258_118_400_000
"""2200-01-01: the records' times end before it."""

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200
NAME_CHARACTERS_MAX: Final = 200

_FILTERS: Final = (
    *("workflow", "version", "component", "status", "error", "review"),
    *("since", "until", "after", "limit"),
)


class OverviewAsked(msgspec.Struct, frozen=True, kw_only=True):
    window_ms: int
    workflow: str = ""


class SignalsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """`until`: where the window ends; 0: now."""

    window_ms: int
    until: int = 0
    workflow: str = ""


class NamedAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow or a component by its name, and how far back."""

    name: str
    window_ms: int


class SessionsAsked(msgspec.Struct, frozen=True, kw_only=True):
    filters: dict[str, str | int]
    limit: int


DASHBOARD_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="dashboard_live",
        method="GET",
        path="/v1/dashboard/live",
        response=DashboardLive,
        scope="operate",
    ),
    Route(
        name="dashboard_overview",
        method="GET",
        path="/v1/dashboard/overview",
        query=("window_ms", "workflow"),
        response=DashboardOverview,
        scope="operate",
    ),
    Route(
        name="dashboard_signals",
        method="GET",
        path="/v1/dashboard/signals",
        query=("window_ms", "until", "workflow"),
        response=GoldenSignals,
        scope="operate",
    ),
    Route(
        name="dashboard_workflow",
        method="GET",
        path="/v1/dashboard/workflows/{name}",
        query=("window_ms",),
        response=DashboardWorkflow,
        scope="operate",
    ),
    Route(
        name="dashboard_component",
        method="GET",
        path="/v1/dashboard/components/{name}",
        query=("window_ms",),
        response=DashboardComponent,
        scope="operate",
    ),
    Route(
        name="dashboard_sessions",
        method="GET",
        path="/v1/dashboard/sessions",
        query=_FILTERS,
        response=DashboardSessions,
        scope="operate",
    ),
    Route(
        name="dashboard_session",
        method="GET",
        path="/v1/dashboard/sessions/{session_id}",
        response=DashboardSession,
        scope="operate",
    ),
)


async def dashboard_live(caller: Caller, asked: calls.Empty) -> Done:
    """What holds now: open sessions, components and their standing, how the records are."""
    return Done(caller.services.dashboard.live(caller.principal))


async def dashboard_overview(caller: Caller, asked: OverviewAsked) -> Done:
    """The golden signals of a window, over time, by workflow and by component."""
    return Done(
        await caller.services.dashboard.overview(
            caller.principal, window_ms=asked.window_ms, workflow=asked.workflow
        )
    )


async def dashboard_signals(caller: Caller, asked: SignalsAsked) -> Done:
    """The four golden signals of a window: what `/metrics` counts, as a query."""
    return Done(
        await caller.services.dashboard.signals(
            caller.principal,
            window_ms=asked.window_ms,
            until=asked.until,
            workflow=asked.workflow,
        )
    )


async def dashboard_workflow(caller: Caller, asked: NamedAsked) -> Done:
    """One workflow in a window: versions, components, errors, quality."""
    return Done(
        await caller.services.dashboard.workflow(
            caller.principal, name=asked.name, window_ms=asked.window_ms
        )
    )


async def dashboard_component(caller: Caller, asked: NamedAsked) -> Done:
    """One component in a window: versions, actions, errors, quality."""
    return Done(
        await caller.services.dashboard.component(
            caller.principal, name=asked.name, window_ms=asked.window_ms
        )
    )


async def dashboard_sessions(caller: Caller, asked: SessionsAsked) -> Done:
    """A keyset page of sessions, newest first, open ones too; all filters hold together."""
    return Done(
        await caller.services.dashboard.sessions(caller.principal, asked.filters, limit=asked.limit)
    )


async def dashboard_session(caller: Caller, asked: calls.SessionIdRequest) -> Done:
    """One session, open or ended: its head, judgements and timeline, payloads masked and cut."""
    return Done(await caller.services.dashboard.session(asked.session_id, caller.principal))


# ---- parameters ----------------------------------------------------------------------------------


def _name(text: str, place: str) -> str:
    """A name as it may be asked for: what is longer or has a NUL names nothing."""
    if not text or len(text) > NAME_CHARACTERS_MAX or "\0" in text:
        raise invalid_request(f"{place}: must have 1 to {NAME_CHARACTERS_MAX} characters, no NUL")
    return text


def _status(text: str, place: str) -> str:
    return _word(text, place, known=[one.value for one in SessionStatus])


def _review(text: str, place: str) -> str:
    return _word(text, place, known=[one.value for one in Review])


def _word(text: str, place: str, *, known: list[str]) -> str:
    if text.upper() not in known:
        raise invalid_request(f"{place}: {text[:40]!r} is none of {', '.join(known)}")
    return text.upper()


def _time_ms(text: str, place: str) -> int:
    found = count(text, place)
    if not text or found > TIME_MS_MAX:
        raise invalid_request(f"{place}: {text[:40]!r} is no time in ms from 0 to {TIME_MS_MAX}")
    return found


def _session_id(text: str, place: str) -> str:
    if not is_session_id(text):
        raise invalid_request(f"{place}: {text[:40]!r} is not the `after` of an earlier page")
    return text


_READ: Final[Mapping[str, Callable[[str, str], str | int]]] = {
    "workflow": _name,
    "version": _name,
    "component": _name,
    "error": _name,
    "status": _status,
    "review": _review,
    "since": _time_ms,
    "until": _time_ms,
    "after": _session_id,
}


def _within(text: str, place: str, *, low: int, high: int, default: int) -> int:
    if not text:
        return default
    found = count(text, place)
    if not low <= found <= high:
        raise invalid_request(f"{place}: {found} is not from {low} to {high}")
    return found


def _window_ms(values: Mapping[str, str]) -> int:
    return _within(
        values.get("window_ms", ""),
        "query window_ms",
        low=WINDOW_MS_MIN,
        high=WINDOW_MS_MAX,
        default=WINDOW_MS_DEFAULT,
    )


def _overview(request: HttpRequest, limits: HttpLimits) -> OverviewAsked:
    values = query_values(request.query, ("window_ms", "workflow"))
    workflow = values.get("workflow", "")
    return OverviewAsked(
        window_ms=_window_ms(values),
        workflow=_name(workflow, "query workflow") if workflow else "",
    )


def _signals(request: HttpRequest, limits: HttpLimits) -> SignalsAsked:
    values = query_values(request.query, ("window_ms", "until", "workflow"))
    workflow, until = values.get("workflow", ""), values.get("until", "")
    return SignalsAsked(
        window_ms=_window_ms(values),
        until=_time_ms(until, "query until") if until else 0,
        workflow=_name(workflow, "query workflow") if workflow else "",
    )


def _named(request: HttpRequest, limits: HttpLimits) -> NamedAsked:
    values = query_values(request.query, ("window_ms",))
    return NamedAsked(name=_name(request.params[0], "path name"), window_ms=_window_ms(values))


def _sessions(request: HttpRequest, limits: HttpLimits) -> SessionsAsked:
    """A parameter that is there but empty filters nothing, as in the form of a page."""
    values = query_values(request.query, _FILTERS)
    filters = {
        name: read(values[name], f"query {name}")
        for name, read in _READ.items()
        if values.get(name)
    }
    limit = _within(
        values.get("limit", ""), "query limit", low=1, high=PAGE_MAX, default=PAGE_DEFAULT
    )
    return SessionsAsked(filters=filters, limit=limit)


def _session(request: HttpRequest, limits: HttpLimits) -> calls.SessionIdRequest:
    return calls.SessionIdRequest(session_id=request.params[0])


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    query_values(request.query, ())
    return EMPTY


DASHBOARD_OPERATIONS: Final[Mapping[str, Operation]] = {
    "dashboard_live": dashboard_live,
    "dashboard_overview": dashboard_overview,
    "dashboard_signals": dashboard_signals,
    "dashboard_workflow": dashboard_workflow,
    "dashboard_component": dashboard_component,
    "dashboard_sessions": dashboard_sessions,
    "dashboard_session": dashboard_session,
}
DASHBOARD_BUILDERS: Final[Mapping[str, Builder]] = {
    "dashboard_live": _nothing,
    "dashboard_overview": _overview,
    "dashboard_signals": _signals,
    "dashboard_workflow": _named,
    "dashboard_component": _named,
    "dashboard_sessions": _sessions,
    "dashboard_session": _session,
}
