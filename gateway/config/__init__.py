"""Settings of the gateway: every figure with its default and the reason for it."""
