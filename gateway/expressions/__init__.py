"""Expressions of a workflow: bare paths copy bytes, everything else is bounded CEL. Pure."""
