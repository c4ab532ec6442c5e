"""What is registered, as the engine sees it: a frozen snapshot of component versions and actions.

The engine asks it only when it makes an event (opening, creating a call); replay never needs it.
Two components that offer one action are ambiguous unless the step names one (SPEC 9.6).
"""

import msgspec

from acp_spec.codec.json import encode
from acp_spec.codec.json_text import array_of
from acp_spec.model.card import Card
from acp_spec.model.enums import Role
from acp_spec.model.semver import matches, parse


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One component version that could serve."""

    card: Card
    digest: str

    @property
    def pin(self) -> str:
        """`name@version`, as pins and lineage write it."""
        return f"{self.card.name}@{self.card.version}"


class Catalog:
    """A snapshot of the active component versions; `active[name]` are the newest-first versions.

    `leaving`: versions that are known and take no new sessions (draining, lease over). They may
    come back, and who is pinned to one still has to know what its card says.
    """

    def __init__(
        self,
        offers: tuple[Offer, ...] = (),
        active: dict[str, str] | None = None,
        *,
        leaving: tuple[Offer, ...] = (),
    ) -> None:
        self.active = dict(active or {})
        self._by_name: dict[str, list[Offer]] = {}
        for offer in offers:
            self._by_name.setdefault(offer.card.name, []).append(offer)
        for versions in self._by_name.values():
            versions.sort(key=lambda offer: parse(offer.card.version), reverse=True)
        # Of two that are the same version the first one counts, and one that is here.
        self._by_pin = {offer.pin: offer for offer in (*leaving, *reversed(offers))}
        self._actions_text: tuple[dict[str, str], bytes] | None = None
        self._by_action: dict[str, list[str]] = {}
        for name, versions in sorted(self._by_name.items()):
            for action in sorted({a.name for offer in versions for a in offer.card.actions}):
                self._by_action.setdefault(action, []).append(name)

    def names_with_role(self, role: Role) -> tuple[str, ...]:
        """Component names of which some version has the role, sorted."""
        return tuple(
            name
            for name, offers in sorted(self._by_name.items())
            if any(role in offer.card.roles for offer in offers)
        )

    def names_with_action(self, action: str) -> tuple[str, ...]:
        """Component names of which some version declares the action, sorted."""
        return tuple(self._by_action.get(action, ()))

    def actions(self) -> tuple[str, ...]:
        """Every action somebody offers, sorted."""
        return tuple(sorted(self._by_action))

    def version(self, name: str, wanted: str = "") -> Offer | None:
        """The active version of `name` if it is in the range `wanted`, else the newest that is."""
        offers = [o for o in self._by_name.get(name, ()) if matches(o.card.version, wanted)]
        active = self.active.get(name)
        return next((o for o in offers if o.card.version == active), offers[0] if offers else None)

    def exact(self, pin: str) -> Offer | None:
        """The offer of `name@version`, or None when that version is not registered now."""
        return self._by_pin.get(pin)

    def actions_text(self, pins: dict[str, str]) -> bytes:
        """The actions a plan may use under these pins, as JSON text for `PlanRequest.actions`.

        Sessions opened over one snapshot have equal pins, so the last text is kept.
        """
        wanted = {key: pin for key, pin in pins.items() if key.startswith("action:")}
        if self._actions_text is None or self._actions_text[0] != wanted:
            self._actions_text = (wanted, self._write_actions(wanted))
        return self._actions_text[1]

    def _write_actions(self, wanted: dict[str, str]) -> bytes:
        texts = []
        for key, pin in sorted(wanted.items()):
            offer = self.exact(pin)
            action = offer.card.action(key.removeprefix("action:")) if offer else None
            if action is not None:
                texts.append(encode(action))
        return array_of(texts)
