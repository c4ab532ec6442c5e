"""The dashboard in a real browser, over a real gateway with real sessions."""
