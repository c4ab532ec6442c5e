"""True claims to start from: what hotline runs said, figures of a public trace, other trades.

`hotline_calls.jsonl` holds distinct calls of two runs of the reference hotline and the claims that
its reflector made of them. `TRADES` are records as tools of other trades answer them, each with
sentences about it; the trace rows are of the Azure LLM inference traces (2023, CC BY 4.0).
"""

import json
from dataclasses import dataclass
from pathlib import Path

HOTLINE = Path(__file__).parent / "hotline_calls.jsonl"


@dataclass(frozen=True)
class Base:
    """A true claim about one call's output (JSON text). `keys`: members it names, value first."""

    action: str
    output: str
    text: str
    keys: tuple[str, ...]
    value: str = ""
    unit: str = ""
    derivation: str = ""

    def member(self, key: str) -> str:
        """The member as a sentence shows it."""
        raw: dict[str, object] = json.loads(self.output, parse_float=str, parse_int=str)
        found = raw[key]
        if isinstance(found, list):
            return ", ".join(str(item) for item in found)
        return (
            {True: "yes", False: "no"}.get(found, str(found))
            if isinstance(found, bool)
            else str(found)
        )

    @property
    def value_key(self) -> str:
        return self.keys[0]


def hotline() -> list[Base]:
    """Every claim of the recorded hotline calls."""
    found = []
    for line in HOTLINE.read_text("utf-8").splitlines():
        call = json.loads(line)
        for claim in call["claims"]:
            keys = tuple(source.removeprefix("/") for source in claim["sources"])
            found.append(
                Base(
                    action=call["action"],
                    output=call["output"],
                    text=claim["text"],
                    keys=keys,
                    value=claim["value"],
                    unit=claim["unit"],
                )
            )
    return found


TRADES: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    ("parcel.track",
     ('{"parcel":"PX-48213","status":"IN_TRANSIT","weight_kg":12.4,"distance_km":845.5,'
      '"due":"2026-12-03","insured":true,"duty":0,"recipient":"Anna Meyer"}'),
     (("Parcel PX-48213 weighs 12.4 kg.", "weight_kg parcel", "kg"),
      ("It has 845.5 km to go.", "distance_km", "km"),
      ("The parcel for Anna Meyer is due on 2026-12-03.", "due recipient", ""))),
    ("parcel.track",
     ('{"parcel":"PX-90077","status":"DELIVERED","weight_kg":3.25,"distance_km":1204.0,'
      '"due":"2026-10-21","insured":false,"duty":18.90,"recipient":"Tom Keller"}'),
     (("Parcel PX-90077 is DELIVERED.", "status parcel", ""),
      ("It weighs 3.25 kg and went to Tom Keller.", "weight_kg recipient", "kg"),
      ("The duty is 18.90.", "duty", ""))),
    ("storage.usage",
     ('{"volume":"vol-7731","used_bytes":52428800000,"quota_gb":80,"files":18342,"share":0.655,'
      '"snapshots":[],"encrypted":true}'),
     (("Volume vol-7731 uses 52428800000 bytes.", "used_bytes volume", "bytes"),
      ("It holds 18342 files.", "files", ""),
      ("Encrypted: yes.", "encrypted", ""))),
    ("storage.usage",
     ('{"volume":"vol-1180","used_bytes":734003200,"quota_gb":5,"files":912,"share":0.1367,'
      '"snapshots":["s1"],"encrypted":false}'),
     (("Volume vol-1180 uses 734003200 bytes.", "used_bytes volume", "bytes"),
      ("Its quota is 5 GB.", "quota_gb", "GB"),
      ("Encrypted: no.", "encrypted", ""))),
    ("flight.status",
     ('{"flight":"LX318","gate":"B42","status":"DELAYED","departs_at":"2026-12-05T09:45:00Z",'
      '"duration_minutes":105,"delay_minutes":35,"seats_left":14}'),
     (("Flight LX318 leaves from gate B42.", "gate flight", ""),
      ("It takes 105 minutes.", "duration_minutes", "minutes"),
      ("It is late by 35 minutes.", "delay_minutes", "minutes"),
      ("14 seats are left.", "seats_left", ""))),
    ("flight.status",
     ('{"flight":"BA2490","gate":"A7","status":"BOARDING","departs_at":"2026-12-11T18:20:00Z",'
      '"duration_minutes":240,"delay_minutes":0,"seats_left":3}'),
     (("Flight BA2490 takes 240 minutes.", "duration_minutes flight", "minutes"),
      ("Gate A7 is where BA2490 is boarding.", "gate flight", ""))),
    ("subscription.get",
     ('{"plan":"Premium","price_cents":129900,"currency":"EUR","renews_on":"2027-02-14",'
      '"active":true,"seats":25,"discount_percent":12.5}'),
     (("The discount is 12.5 percent.", "discount_percent", "percent"),
      ("It renews on 2027-02-14.", "renews_on", ""),
      ("It has 25 seats.", "seats", ""))),
    ("subscription.get",
     ('{"plan":"Starter","price_cents":1450,"currency":"GBP","renews_on":"2026-12-31",'
      '"active":false,"seats":4,"discount_percent":7.5}'),
     (("The discount is 7.5 percent.", "discount_percent", "percent"),
      ("The Starter plan has 4 seats.", "seats plan", ""))),
    ("loan.get",
     ('{"loan":"LN-55120","balance":-18250.75,"currency":"CHF","rate_percent":3.85,'
      '"term_months":48,"next_due":"2027-01-15","status":"ACTIVE","arrears":0}'),
     (("The rate of loan LN-55120 is 3.85 percent.", "rate_percent loan", "percent"),
      ("It runs for 48 months.", "term_months", "months"),
      ("The balance is -18250.75 CHF.", "balance currency", "CHF"),
      ("The next payment is due on 2027-01-15.", "next_due", ""))),
    ("loan.get",
     ('{"loan":"LN-71903","balance":-2400.50,"currency":"GBP","rate_percent":5.25,'
      '"term_months":24,"next_due":"2026-12-20","status":"CLOSED","arrears":310.25}'),
     (("Loan LN-71903 is CLOSED.", "status loan", ""),
      ("The arrears are 310.25 GBP.", "arrears currency", "GBP"))),
    ("order.get",
     ('{"order":"SO-2026-1187","total":348.60,"shipping":12.40,"tax":55.66,"currency":"USD",'
      '"items":3,"status":"SHIPPED","placed":"2026-11-18"}'),
     (("Order SO-2026-1187 comes to 348.60 USD.", "total order currency", "USD"),
      ("It was placed on 2026-11-18.", "placed", ""),
      ("Shipping costs 12.40 USD.", "shipping currency", "USD"))),
    ("order.get",
     ('{"order":"SO-2026-0954","total":1875.25,"shipping":0,"tax":299.41,"currency":"EUR",'
      '"items":11,"status":"PENDING","placed":"2026-09-04"}'),
     (("Order SO-2026-0954 is PENDING.", "status order", ""),
      ("It comes to 1875.25 EUR with 11 items.", "total items currency", "EUR"))),
)  # fmt: skip

TRACES: tuple[tuple[str, int, int], ...] = (
    ("2023-11-16 18:15:46", 374, 44),
    ("2023-11-16 18:15:50", 396, 109),
    ("2023-11-16 18:15:51", 879, 55),
    ("2023-11-16 18:15:51", 91, 16),
    ("2023-11-16 18:15:52", 381, 84),
    ("2023-11-16 18:15:54", 1313, 142),
)
"""Rows of `azure_llm_traces/conv.csv`, to the second: a test holds them against the file."""


def trades() -> list[Base]:
    """A claim per sentence of `TRADES`."""
    found = []
    for action, output, sentences in TRADES:
        members: dict[str, object] = json.loads(output, parse_float=_Written, parse_int=_Written)
        for text, named, unit in sentences:
            keys = tuple(named.split())
            found.append(
                Base(
                    action=action,
                    output=output,
                    text=text,
                    keys=keys,
                    value=_json(members[keys[0]]),
                    unit=unit,
                )
            )
    return found


def traces() -> list[Base]:
    """A claim per row of the trace."""
    found = []
    for time, context, generated in TRACES:
        output = f'{{"at":"{time}","context_tokens":{context},"generated_tokens":{generated}}}'
        text = f"At {time} it read {context} tokens."
        keys = ("context_tokens", "at")
        found.append(Base("llm.usage", output, text, keys, value=str(context)))
    return found


class _Written(str):
    """A number as it is written."""


def _json(value: object) -> str:
    return str(value) if isinstance(value, _Written) else json.dumps(value)


def halves() -> tuple[list[Base], list[Base]]:
    """Bases to tune on, and others to be judged on: no call is in both."""
    found = [*hotline(), *trades(), *traces()]
    outputs = list(dict.fromkeys(base.output for base in found))
    place = {output: index % 2 for index, output in enumerate(outputs)}
    tuned = [base for base in found if place[base.output] == 0]
    return tuned, [base for base in found if place[base.output] == 1]
