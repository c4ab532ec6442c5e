"""Peers that keep every rule but one: the proof that each case can fail, for its reason."""
