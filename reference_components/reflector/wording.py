"""Sentences from outputs: for each action the facts it gives, each with where it stands.

A sentence takes values by name from the call's output, as their source text (0.10 stays 0.10), and
becomes one claim that points to them. Where a member is missing, its sentence is left out.
"""

import re
from dataclasses import dataclass

import msgspec

from acp_spec.codec.json_text import find
from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.payload import is_absent, payload


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` with `{member}` places; `value` is the member the claim is about, `unit` its unit."""

    text: str
    value: str
    unit: str = ""


SENTENCES: dict[str, tuple[Sentence, ...]] = {
    "ledger.balance": (
        Sentence("Account {account} holds {balance} {currency}.", "balance", "{currency}"),
    ),
    "ledger.transfer": (
        Sentence(
            "{amount} {currency} went from account {from_account} to {to_account}.",
            "amount",
            "{currency}",
        ),
        Sentence("Account {from_account} now holds {balance} {currency}.", "balance", "{currency}"),
        Sentence("It is entry {entry} of the ledger.", "entry"),
    ),
    "ledger.fee": (Sentence("The charge on {amount} is {fee}.", "fee"),),
    "rates.quote": (Sentence("One {from} costs {rate} {to}, as of {as_of}.", "rate", "{to}"),),
    "rates.convert": (
        Sentence("{amount} {from} are {converted} {to}, as of {as_of}.", "converted", "{to}"),
        Sentence("The rate is {rate}.", "rate"),
    ),
    "rates.currencies": (Sentence("There are rates for {currencies}.", "currencies"),),
    "cards.status": (
        Sentence("The {kind} card {card}, ending in {last4}, is {status}.", "status"),
        Sentence("It is valid until {expires}.", "expires"),
        Sentence("It arrives in {delivery_days} days.", "delivery_days", "days"),
        Sentence("{pin_tries_left} tries for the PIN are left.", "pin_tries_left"),
        Sentence("Contactless payment: {contactless}.", "contactless"),
    ),
    "cards.limits": (
        Sentence("Card {card} pays at most {payments_daily} {currency} a day.", "payments_daily",
                 "{currency}"),
        Sentence("At machines it gives at most {atm_daily} {currency} a day.", "atm_daily",
                 "{currency}"),
        Sentence("It may be topped up by {top_up_daily} {currency} a day.", "top_up_daily",
                 "{currency}"),
    ),
    "cards.freeze": (Sentence("Card {card} is now {status}; it was {was}.", "status"),),
    "cards.activate": (Sentence("Card {card} is now {status}; it was {was}.", "status"),),
    "cards.replace": (
        Sentence("Card {card} replaces {replaces}.", "card"),
        Sentence("It arrives in {delivery_days} days.", "delivery_days", "days"),
    ),
}  # fmt: skip

_PLACE = re.compile(r"\{(\w+)\}")


def claims_of(call: SettledCall) -> list[Claim]:
    """What a succeeded call lets us say."""
    if is_absent(call.output):
        return []
    output = bytes(call.output)
    sentences = SENTENCES.get(call.action)
    if sentences is None:
        text = f"{call.action} answered {_shown(output)}."
        source = f"/calls/{_escaped(call.call_id)}/output"
        return [Claim(text=text, value=call.output, sources=(source,))]
    claims = (_claim(sentence, call, output=output) for sentence in sentences)
    return [claim for claim in claims if claim is not None]


def _claim(sentence: Sentence, call: SettledCall, *, output: bytes) -> Claim | None:
    members = {name: find(output, f"/{name}") for name in _PLACE.findall(sentence.text)}
    value = find(output, f"/{sentence.value}")
    if value is None or any(text is None for text in members.values()):
        return None
    shown = {name: _shown(text) for name, text in members.items() if text is not None}
    places = dict.fromkeys((sentence.value, *members))
    return Claim(
        text=_PLACE.sub(lambda place: shown[place[1]], sentence.text),
        value=payload(value),
        unit=_PLACE.sub(lambda place: shown[place[1]], sentence.unit),
        sources=tuple(f"/calls/{_escaped(call.call_id)}/output/{name}" for name in places),
    )


def _shown(text: bytes) -> str:
    """A value for a person: strings without quotes, lists with commas, numbers as they stand."""
    if text[:1] == b'"':
        return msgspec.json.decode(text, type=str)
    if text[:1] == b"[":
        parts = msgspec.json.decode(text, type=list[msgspec.Raw])
        return ", ".join(_shown(bytes(part)) for part in parts)
    return {b"true": "yes", b"false": "no"}.get(text, text.decode())


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
