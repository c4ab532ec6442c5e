"""Real builds, real processes, raw requests: no component here is reached through our SDK."""
