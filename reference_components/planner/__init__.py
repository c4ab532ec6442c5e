"""The hotline's planner: a question becomes a plan, by rules that a person can read."""
