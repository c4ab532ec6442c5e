"""Rules that turn what a session left behind into rewards; each is pure."""
