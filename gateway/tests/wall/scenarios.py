"""The scenarios of the wall: what goes wrong, when, and for how long.

Each is a function that is given the site once its sessions are open; it returns when nothing goes
wrong any more. Afterwards a fresh session must succeed: nothing may stay broken.
"""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from gateway.tests.wall.fault_proxy import WELL, Fault
from gateway.tests.wall.site import Site

AMID_S = 0.15
"""A moment in the middle of the first calls."""

Story = Callable[[Site, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`fault` stands before the sessions open; `story` happens to them. `costs_nothing`: every call
    must succeed all the same. `is_short`: part of `make test`. `own_gateway`: it is killed."""

    name: str
    fault: Fault = WELL
    story: Story | None = None
    lasts_s: float = 1.0
    sessions: int = 4
    costs_nothing: bool = False
    is_short: bool = False
    own_gateway: bool = False
    must_fail: bool = False


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _kill_component(site: Site, name: str) -> None:
    pause(AMID_S)
    site.places[name].kill()
    pause(0.3)
    site.places[name].again()


def _stop_component(site: Site, name: str) -> None:
    pause(AMID_S)
    site.places[name].signal(signal.SIGSTOP)
    pause(1.5)
    site.places[name].signal(signal.SIGCONT)


def _kill_gateway(site: Site, name: str) -> None:
    pause(AMID_S)
    site.kill_gateway()


def _stop_gateway(site: Site, name: str) -> None:
    pause(AMID_S)
    with site.without_gateway():
        site.gateway.process.send_signal(signal.SIGSTOP)
        pause(1.5)
        site.gateway.process.send_signal(signal.SIGCONT)


def _kill_both(site: Site, name: str) -> None:
    pause(AMID_S)
    site.places[name].kill()
    with site.without_gateway():
        site.gateway.kill()
        site.places[name].again()
    site.kill_gateway()


def _kill_gateway_again_and_again(site: Site, name: str) -> None:
    for _ in range(4):
        _kill_gateway(site, name)


def _kill_component_again_and_again(site: Site, name: str) -> None:
    for _ in range(5):
        _kill_component(site, name)


def _flap(site: Site, name: str) -> None:
    for _ in range(6):
        site.proxies[name].fault = Fault(reset_on_accept=True)
        site.proxies[name].cut_all()
        pause(0.12)
        site.proxies[name].fault = WELL
        pause(0.12)


def _cut_all_amid(site: Site, name: str) -> None:
    for _ in range(4):
        pause(0.04)
        site.proxies[name].cut_all()


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="control", costs_nothing=True, is_short=True),
    Scenario(name="latency", fault=Fault(delay_up_s=0.05, delay_down_s=0.05), costs_nothing=True),
    Scenario(name="too-late", fault=Fault(delay_down_s=0.6), lasts_s=2.5, is_short=True),
    Scenario(name="slow-line", fault=Fault(bytes_per_s=20_000), costs_nothing=True),
    Scenario(name="crawling-line", fault=Fault(bytes_per_s=2_000), lasts_s=2.5),
    Scenario(name="reset-on-accept", fault=Fault(reset_on_accept=True), is_short=True),
    Scenario(name="every-second-reset", fault=Fault(reset_on_accept=True, every_second=True)),
    Scenario(name="reset-behind-the-request", fault=Fault(cut_down_after=0), is_short=True),
    Scenario(name="reset-in-the-head", fault=Fault(cut_down_after=40)),
    Scenario(name="reset-in-the-body", fault=Fault(cut_down_after=900), is_short=True),
    Scenario(name="reset-in-the-request", fault=Fault(cut_up_after=150), is_short=True),
    Scenario(name="slow-close", fault=Fault(lingers_s=1.0)),
    Scenario(name="black-hole", fault=Fault(black_hole=True), lasts_s=2.5, is_short=True),
    Scenario(name="lost-request", fault=Fault(deaf_up=True), lasts_s=2.5),
    Scenario(name="lost-answer", fault=Fault(swallow_down=True), lasts_s=2.5, is_short=True),
    Scenario(name="flapping", story=_flap, sessions=12),
    Scenario(name="cuts-amid", story=_cut_all_amid, sessions=12, is_short=True),
    Scenario(name="component-killed", story=_kill_component, sessions=10, is_short=True),
    Scenario(name="component-stopped", story=_stop_component, sessions=8),
    Scenario(name="component-kill-loop", story=_kill_component_again_and_again, sessions=20),
    Scenario(
        name="gateway-killed", story=_kill_gateway, own_gateway=True, sessions=10, is_short=True
    ),
    Scenario(name="gateway-stopped", story=_stop_gateway, own_gateway=True, sessions=8),
    Scenario(name="both-killed", story=_kill_both, own_gateway=True, sessions=8),
    Scenario(
        name="gateway-kill-loop", story=_kill_gateway_again_and_again, own_gateway=True, sessions=20
    ),
    Scenario(name="every-request-twice", fault=Fault(twice=True), is_short=True, must_fail=True),
)
"""The last one is the negative control: no gateway can hide it, so the wall must say FAIL."""
