"""Words and phrases by which a comment is read without any model, in six languages.

Stems: what begins so is meant. A language that is not here is not understood, and a comment in it
is not judged; that is said, not guessed. Add a language as one column of every table.
"""

from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt")

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "GOOD": (
        *("great", "perfect", "helpful", "excellent", "correct", "well done", "thank"),
        *("super", "hilfreich", "richtig", "korrekt", "danke", "ausgezeichnet"),
        *("parfait", "utile", "très bien", "merci", "exact"),
        *("perfecto", "útil", "excelente", "gracias", "correcto"),
        *("perfetto", "ottimo", "grazie", "corretto", "perfeito", "ótimo", "obrigad", "correto"),
    ),
    "WRONG": (
        *("wrong", "incorrect", "mistake", "false", "inaccurate", "error"),
        *("falsch", "fehler", "unrichtig", "inkorrekt", "stimmt nicht"),
        *("faux", "fausse", "erreur", "inexact", "incorrecte"),
        *("incorrecto", "equivocad", "errado", "falso"),
        *("sbagliat", "errore", "errato", "incorreto", "erro"),
    ),
    "INCOMPLETE": (
        *("missing", "incomplete", "forgot", "left out"),
        *("fehlt", "unvollständig", "vergessen"),
        *("manque", "incomplet", "oublié"),
        *("falta", "incompleto", "olvid", "manca", "incompleta", "dimenticat", "esquec"),
    ),
    "SLOW": (
        *("slow", "took too long", "took forever", "waited"),
        *("langsam", "zu lange", "gewartet"),
        *("lent", "trop long", "attendu"),
        *("lento", "demasiado tiempo", "tardó", "tardo", "troppo tempo", "lenta", "demor"),
    ),
    "RUDE": (
        *("rude", "impolite", "unfriendly"),
        *("unhöflich", "unfreundlich", "frech"),
        *("impoli", "désagréable", "grossier"),
        *("grosero", "maleducad", "scortese", "grosseir", "rud", "mal-educad"),
    ),
    "NOT_ASKED": (
        *("did not ask", "didn't ask", "never asked", "without asking", "not what i asked"),
        *("nicht gefragt", "nicht verlangt", "ohne zu fragen"),
        *("pas demandé", "sans demander"),
        *("no pedí", "sin preguntar", "non ho chiesto", "senza chiedere", "não pedi"),
    ),
}
"""Tag -> stems of all languages together: a comment may mix them, and says not which it is in."""

NEGATIONS: Final = (
    *("not", "no", "never", "isn't", "wasn't", "n't", "hardly", "nothing"),
    *("nicht", "kein", "keine", "nie", "nichts"),
    *("pas", "jamais", "aucun", "aucune", "rien"),
    *("nunca", "ningún", "ninguna", "nada", "non", "mai", "nessun", "não", "nenhum"),
)
"""Up to two words before a stem, one of these takes its tag away; nothing is put in its place."""

RIGHT_THEN_WRONG: Final = (
    *("instead of", "rather than", "statt", "anstatt", "anstelle von", "au lieu de"),
    *("en lugar de", "en vez de", "invece di", "anziché", "em vez de", "ao invés de"),
)
"""`RIGHT instead of WRONG`."""

WRONG_THEN_RIGHT: Final = (
    *(("not", "but"), ("nicht", "sondern"), ("pas", "mais"), ("no", "sino")),
    *(("non", "ma"), ("não", "mas")),
)
"""`not WRONG but RIGHT`."""

SHOULD_BE: Final = (
    *("should be", "should have been", "must be", "ought to be"),
    *("sollte sein", "müsste sein", "richtig wäre", "richtig ist"),
    *("devrait être", "aurait dû être", "debería ser", "debe ser"),
    *("dovrebbe essere", "deve essere", "deveria ser", "deve ser"),
)
"""`it should be RIGHT`."""
