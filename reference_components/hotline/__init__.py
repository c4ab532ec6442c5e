"""The bank hotline: its workflow, its data, and what the demo needs to run it."""
