"""The hallucination guard (R16): does what a session said stand in what its calls showed? Pure.

It decides by rules a person can read, never by a model: SUPPORTED, CONTRADICTED or NOT_CHECKABLE,
each with its reason. What it cannot decide it leaves to people; it never guesses.
"""
