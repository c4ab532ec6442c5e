"""Putting the gateway together: the one place that knows, starts and stops every part."""

from gateway.assembly.serving import serve

__all__ = ["serve"]
