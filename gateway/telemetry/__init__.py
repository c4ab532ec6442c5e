"""Logs, metrics and spans: what the gateway tells about itself; it imports nothing of ours."""
