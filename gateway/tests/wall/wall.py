"""Playing scenarios: those that share a gateway at the same time, those that kill theirs alone."""

import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import monotonic

from gateway.tests.e2e.client import Client
from gateway.tests.faults.town import Town
from gateway.tests.wall.fault_proxy import WELL
from gateway.tests.wall.scenarios import Scenario, pause
from gateway.tests.wall.scoring import Log, Score, Told, score
from gateway.tests.wall.site import Site, open_sessions, start_gateway

END_S = 20.0
LATE_S = 0.3
BACK_WITHIN_S = 8.0
"""Four times the longest that a breaker stays open by default."""


def play_all(scenarios: Iterable[Scenario], *, at_once: int = 4) -> list[Score]:
    """Scores in the order of the scenarios."""
    every = list(scenarios)
    scores: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as folder, Town() as town:
        shared = [one for one in every if not one.own_gateway]
        site = Site(Path(folder), town, start_gateway(Path(folder)))
        with closing(site), ThreadPoolExecutor(at_once) as pool:
            for one in shared:
                site.settle(one.name, is_patient=one.costs_nothing)
            played = pool.map(lambda one: _play(one, site), shared)
            scores.update((found.name, found) for found in played)
    for one in every:
        if one.own_gateway:
            scores[one.name] = _alone(one)
    return [scores[one.name] for one in every]


def _alone(scenario: Scenario) -> Score:
    with tempfile.TemporaryDirectory() as folder, Town() as town:
        site = Site(Path(folder), town, start_gateway(Path(folder)))
        with closing(site):
            site.settle(scenario.name, is_patient=scenario.costs_nothing)
            return _play(scenario, site)


def _play(scenario: Scenario, site: Site) -> Score:
    name, proxy = scenario.name, site.proxies[scenario.name]
    proxy.fault = scenario.fault
    if scenario.fault is not WELL:
        proxy.cut_all()
    opened = open_sessions(site, name, scenario.sessions)
    if scenario.story is not None:
        scenario.story(site, name)
    else:
        pause(scenario.lasts_s)
    if not scenario.must_fail and not scenario.costs_nothing:
        proxy.fault = WELL
        proxy.cut_all()
    told = [_told(site, session_id) for session_id in opened]
    after = _after(site, name)
    pause(LATE_S)
    place = site.places[name]
    deadline_ms = place.deadline_ms + round(site.away_ms)
    found = score(name, [*told, *after], Log.read(place.log), deadline_ms=deadline_ms)
    if not opened:
        found.broken.append("no session was opened: nothing was tried")
    if scenario.costs_nothing and found.succeeded < found.sessions:
        found.broken.append(f"{found.sessions - found.succeeded} sessions suffered; none had to")
    if not scenario.must_fail and after[-1].view["output"] != "SUCCEEDED":
        found.broken.append("a session after the fault fails still")
    return found


def _told(site: Site, session_id: str) -> Told:
    with site.client() as client:
        view = client.ended(session_id, within_s=END_S)
        return Told(view=view, rows=_rows(client, session_id))


def _after(site: Site, name: str) -> list[Told]:
    """Sessions opened when nothing goes wrong any more, up to the first that goes well.

    The first ones may meet a half dead line, or a breaker whose time is not over.
    """
    told: list[Told] = []
    until_s = monotonic() + BACK_WITHIN_S
    with site.client() as client:
        while not told or (told[-1].view["output"] != "SUCCEEDED" and monotonic() < until_s):
            view = client.run(name).json
            told.append(Told(view=view, rows=_rows(client, view["session_id"])))
    return told


def _rows(client: Client, session_id: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.trajectory(session_id)["calls"]
    return found
