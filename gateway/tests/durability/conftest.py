"""Components as real processes, as the end-to-end tests start them."""

from gateway.tests.e2e.conftest import start_components

__all__ = ["start_components"]
