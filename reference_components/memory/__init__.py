"""The hotline's memory: what was observed, kept on disk and found again by its words."""
