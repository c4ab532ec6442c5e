"""How well values find into a domain: BANKING77's 77 names, perturbed, and names that are foreign.

The domain is all 77 names of BANKING77 (PolyAI, CC BY 4.0), read from ACP_DATA. The names and the
foreign names are each cut into two halves by a seed: `--half choose` is what the threshold and the
weights of `nearest` were chosen with, `--half measure` (the default) is what is reported.

Queries for each name of the half, all drawn from `random.Random(seed)`:
  exact      the name
  spelling   3: another case (upper, Title, camelCase), other separators (space, dash, dot, none,
             doubled, around), full-width letters, or marks over vowels
  typo       4: 1 edit, 2 if the name has over 12 letters (swap, drop, double or replace a letter
             in words of over 3 letters), half of them with spaces instead of `_`
  synonym    1 where a word of the name has an entry in WORDS: one entry of each word is declared in
             the domain as a synonym, the query is that synonym in another spelling
  paraphrase 2 where it can be made: the word replaced by another entry of WORDS, which is *not*
             declared; or the words reordered, a filler added, a stop word dropped
Foreign values, which must be refused: the labels of foreign_labels.json (`near`: made of the
domain's own words with another meaning; `bank`: other banking labels; `other`: other trades), each
once as it is and once in another spelling, and 20 words of random syllables. Its `opposite` labels
(contraries of the names) are asked in the half `choose` only: the rule against them was made with
them in sight.
`wrong` is the share of all queries that came to a value they do not mean.
"""

import argparse
import json
import os
import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from acp_spec.model.semantics import HowMapped
from gateway.governance.domains import (
    THRESHOLD_DEFAULT,
    Domain,
    Nearest,
    clashes,
    domain_of,
    place,
)
from gateway.governance.folding import fold
from gateway.runtime.embedding import EmbeddingNearest, load_encoder
from gateway.runtime.ngrams import NgramNearest

SEED = 77
WRONG_MOST = 0.02

WORDS = {
    "charge": ("fee", "cost"),
    "charged": ("billed", "debited"),
    "fee": ("charge", "cost"),
    "card": ("plastic", "bank_card"),
    "failed": ("unsuccessful", "did_not_work"),
    "declined": ("rejected", "refused"),
    "pending": ("outstanding", "waiting"),
    "lost": ("missing", "misplaced"),
    "stolen": ("robbed", "pinched"),
    "transfer": ("remittance", "wire"),
    "cash": ("money", "notes"),
    "withdrawal": ("take_out", "payout"),
    "payment": ("purchase", "paying"),
    "verify": ("confirm", "prove"),
    "identity": ("who_i_am", "id"),
    "limits": ("limit", "maximum"),
    "blocked": ("locked", "frozen"),
    "change": ("new", "replace"),
    "delivery": ("shipping", "post"),
    "refund": ("money_back", "reimbursement"),
    "terminate": ("close", "end"),
    "account": ("acct", "bank_account"),
    "activate": ("enable", "switch_on"),
    "exchange": ("conversion", "forex"),
    "wrong": ("incorrect", "false"),
    "order": ("ask_for", "request"),
    "getting": ("obtain", "get"),
    "top_up": ("topup", "add_money"),
    "recognised": ("recognized", "known"),
    "spare": ("second", "extra"),
    "country": ("nation", "countries"),
    "passcode": ("password", "code"),
    "forgotten": ("lost_it", "forgot"),
    "edit": ("change", "update"),
    "support": ("supported", "help"),
}
FOREIGN = Path(__file__).parent / "foreign_labels.json"
FILLERS = ("my", "the", "a", "about", "issue", "question")
STOP_WORDS = frozenset(("my", "a", "the", "to", "of", "by", "for", "on", "via", "or", "and"))
MARKS = {"a": "\u00e1", "e": "\u00e9", "i": "\u00ef", "o": "\u00f6", "u": "\u00fc"}
SYLLABLES = ("ba", "ko", "lin", "tor", "mu", "sek", "pra", "vol", "ni", "gret", "fa", "dum")


@dataclass(frozen=True, slots=True)
class Query:
    """A value, how it was made, and what it means ("": it is foreign)."""

    kind: str
    text: str
    means: str


def halves(items: list[str], seed: int) -> tuple[list[str], list[str]]:
    """The same cut for the same seed: (chosen with, measured)."""
    shuffled = sorted(items)
    random.Random(seed).shuffle(shuffled)
    middle = len(shuffled) // 2
    return sorted(shuffled[:middle]), sorted(shuffled[middle:])


def foreign_labels(half: int) -> list[str]:
    groups: dict[str, list[str]] = json.loads(FOREIGN.read_text())
    seen = groups.pop("opposite")
    mine = halves([label for group in groups.values() for label in group], SEED)[half]
    return mine if half else [*mine, *seen]


def replaced_word(name: str, entry: int) -> str:
    """The name with its first word of WORDS said otherwise; "" where it has none."""
    padded = f"_{name.lower().strip('?')}_"
    for word, others in WORDS.items():
        if f"_{word}_" in padded:
            return padded.replace(f"_{word}_", f"_{others[entry]}_", 1).strip("_")
    return ""


def domain_with_synonyms(names: list[str]) -> Domain:
    """All names; the first entry of WORDS is declared where it clashes with nothing."""
    values: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        synonym = replaced_word(name, 0)
        if synonym:
            values[name] = [synonym]
            if clashes(values):
                values[name] = []
    return domain_of("banking77", values)


def respelled(text: str, chance: random.Random) -> str:
    parts = text.split("_")
    kind = chance.randrange(9)
    match kind:
        case 0:
            return text.upper()
        case 1:
            return " ".join(part.capitalize() for part in parts)
        case 2:
            return parts[0] + "".join(part.capitalize() for part in parts[1:])
        case 3:
            return "-".join(parts)
        case 4:
            return ".".join(part.title() for part in parts)
        case 5:
            return "  ".join(parts) + " "
        case 6:
            return "".join(parts)
        case 7:
            return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
        case _:
            return "".join(MARKS.get(c, c) for c in text)


def mistyped(text: str, chance: random.Random) -> str:
    letters = list(text)
    for _ in range(2 if sum(c.isalpha() for c in text) > 12 else 1):
        places = [
            i
            for i, c in enumerate(letters[:-1])
            if c.isalpha() and letters[i + 1].isalpha() and _word_length(letters, i) > 3
        ]
        at = chance.choice(places)
        match chance.randrange(4):
            case 0:
                letters[at], letters[at + 1] = letters[at + 1], letters[at]
            case 1:
                del letters[at]
            case 2:
                letters.insert(at, letters[at])
            case _:
                letters[at] = chance.choice("abcdefghijklmnopqrstuvwxyz")
    made = "".join(letters)
    return made.replace("_", " ") if chance.random() < 0.5 else made


def _word_length(letters: list[str], at: int) -> int:
    start = at
    while start > 0 and letters[start - 1].isalpha():
        start -= 1
    end = at
    while end < len(letters) and letters[end].isalpha():
        end += 1
    return end - start


def paraphrased(name: str, chance: random.Random) -> str:
    """One of: another word (not declared), another order, a filler more, a stop word less."""
    parts = name.split("_")
    other = replaced_word(name, 1)
    dropped = [part for part in parts if part not in STOP_WORDS]
    ways = [other] if other else []
    ways.append("_".join((*parts[1:], parts[0])))
    ways.append("_".join((chance.choice(FILLERS), *parts)))
    if len(dropped) < len(parts):
        ways.append("_".join(dropped))
    return chance.choice(ways)


def queries_of(names: list[str], domain: Domain, *, seed: int) -> Iterator[Query]:
    chance = random.Random(seed)
    declared = {value: synonym for synonym, value in domain.synonyms.items()}
    for name in names:
        yield Query("exact", name, name)
        for _ in range(3):
            yield Query("spelling", respelled(name, chance), name)
        for _ in range(4):
            yield Query("typo", mistyped(name, chance), name)
        if name in declared:
            yield Query("synonym", respelled(declared[name], chance), name)
        for _ in range(2):
            text = paraphrased(name, chance)
            if fold(text) not in domain.meanings:
                yield Query("paraphrase", text, name)


def foreign_of(texts: list[str], *, seed: int) -> Iterator[Query]:
    chance = random.Random(seed)
    for text in texts:
        yield Query("foreign", text, "")
        yield Query("foreign", respelled(text, chance), "")
    for _ in range(20):
        words = ["".join(chance.choices(SYLLABLES, k=2)) for _ in range(2)]
        yield Query("foreign", "_".join(words), "")


def measured(domain: Domain, queries: list[Query], *, nearest: Nearest) -> dict[str, object]:
    nearest(domain, "warm")
    outcomes: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = {}
    wrong: list[tuple[Query, str, float]] = []
    took: list[float] = []
    for query in queries:
        began = process_time()
        found = place(domain, query.text, nearest=nearest)
        took.append(process_time() - began)
        is_wrong = found.how is not HowMapped.REFUSED and found.value != query.means
        label = "wrong" if is_wrong else found.how.value.lower()
        outcomes[label] += 1
        by_kind.setdefault(query.kind, Counter())[label] += 1
        if is_wrong:
            wrong.append((query, found.value, found.confidence))
    for query, value, confidence in wrong:
        print(f"wrong: {query.kind} {query.text!r} -> {value} ({confidence:.2f})", file=sys.stderr)
    total = len(queries)
    took.sort()
    return {
        "queries": total,
        **{
            name: round(outcomes[name] / total, 4)
            for name in ("exact", "folded", "synonym", "nearest", "refused", "wrong")
        },
        "by_kind": {kind: dict(counts) for kind, counts in by_kind.items()},
        "median_cpu_us": round(took[total // 2] * 1e6, 1),
        "p99_cpu_us": round(took[total * 99 // 100] * 1e6, 1),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--half", choices=("choose", "measure"), default="measure")
    options.add_argument("--threshold", type=float, default=THRESHOLD_DEFAULT)
    options.add_argument("--model", help="a model2vec directory: meanings beside spellings")
    given = options.parse_args()
    data = os.environ.get("ACP_DATA", "")
    names_file = Path(data) / "banking77" / "categories.json"
    if not data or not names_file.is_file():
        print("bench-semantics: set ACP_DATA to the folder that holds banking77/", file=sys.stderr)
        return 1
    names = [unicodedata.normalize("NFC", name) for name in json.loads(names_file.read_text())]
    domain = domain_with_synonyms(names)
    domain = domain_of("banking77", synonyms_of(domain), threshold=given.threshold)
    place_of = 0 if given.half == "choose" else 1
    mine = halves(names, SEED)[place_of]
    foreign = foreign_labels(place_of)
    queries = [
        *queries_of(mine, domain, seed=SEED + place_of),
        *foreign_of(foreign, seed=SEED + place_of),
    ]
    nearest: Nearest = NgramNearest()
    if given.model:
        nearest = EmbeddingNearest(load_encoder(Path(given.model)), nearest)
    found = measured(domain, queries, nearest=nearest)
    load = os.getloadavg()[0]
    line = {"half": given.half, "threshold": given.threshold, **found, "load": round(load, 2)}
    print(json.dumps(line))
    share = found["wrong"]
    assert isinstance(share, float)
    return 0 if share < WRONG_MOST else 1


def synonyms_of(domain: Domain) -> dict[str, list[str]]:
    """The domain as it would stand in a contract."""
    values: dict[str, list[str]] = {value: [] for value in sorted(domain.values)}
    for synonym, value in domain.synonyms.items():
        values[value].append(synonym)
    return values


if __name__ == "__main__":
    sys.exit(main())
