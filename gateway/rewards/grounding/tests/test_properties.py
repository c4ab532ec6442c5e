"""Whatever a component claims, judging it ends, raises nothing, and gives a reason."""

import json

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.payload import payload
from gateway.rewards.grounding.claims import judged
from gateway.rewards.grounding.findings import Standing

_WORDS = st.sampled_from(
    [
        *("no", "not", "fee", "1.234,56", "1,25,000", "-5", "(50.00)", "€", "GBP", "12:61", "3 pm"),
        *("2026-02-31", "31.02.2026", "04/05/26", "May", "about", "more than", "one", "card-0001"),
        *("**** 1234", "ACTIVE", "frozen", "Anna Meyer", "1e99", "5 kg", "2 h 30 min", "²", "٣"),
        *(
            "100%",
            "1.2.3",
            "K",
            "total",
            "1 000 000",
            "\u202f",
            "is",
            "was",
            "to",
            "from",
            ".",
            ",",
        ),
    ]
)
_TEXT = st.one_of(st.lists(_WORDS, max_size=14).map(" ".join), st.text(max_size=80))
_NUMBER = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
_SCALAR = st.one_of(st.none(), st.booleans(), _NUMBER, _TEXT)
_VALUE = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_NAME = st.sampled_from(["amount", "fee_cents", "at_ms", "is_active", "status", "currency", "was"])
_DERIVATION = st.sampled_from(
    ["", "amount * 2", "sources[0]", "sources[9]", "1 / 0", "(", "fee + 1"]
)


@given(
    text=_TEXT,
    value=_VALUE,
    unit=st.sampled_from(["", "GBP", "days", "?"]),
    derivation=_DERIVATION,
    output=st.dictionaries(_NAME, _VALUE, max_size=4),
)
def test_any_claim_about_any_output_gets_a_verdict(
    text: str, value: object, unit: str, derivation: str, output: dict[str, object]
) -> None:
    claim = Claim(
        text=text,
        value=payload(json.dumps(value).encode()),
        unit=unit,
        derivation=derivation,
        sources=tuple(f"/calls/c/output/{name}" for name in output),
    )
    call = SettledCall(call_id="c", output=payload(json.dumps(output).encode()))
    found = judged(claim, {"c": call})
    assert found.standing in Standing
    assert found.reason
    assert bool(found.missing) is not bool(output)


@given(
    amount=st.decimals(min_value=-(10**9), max_value=10**9, places=2), unit=st.sampled_from("€£")
)
def test_an_amount_is_supported_however_its_country_writes_it(amount: object, unit: str) -> None:
    code = {"€": "EUR", "£": "GBP"}[unit]
    call = SettledCall(
        call_id="c", output=payload(f'{{"amount":{amount},"currency":"{code}"}}'.encode())
    )
    english = f"{amount:,}"
    german = english.translate(str.maketrans(",.", ".,"))
    for text in (
        f"It is {english} {code}.",
        f"Es sind {german} {unit}.",
        f"It is {amount} {unit}.",
    ):
        found = judged(Claim(text=text, sources=("/calls/c/output/amount",)), {"c": call})
        assert found.standing is Standing.STANDS, (text, found.reason)
