"""The process between a component and a program that it runs: makes the room, watches, ends it.

It runs as a program of its own, with the standard library only (no site packages, so that it
starts in milliseconds), and knows the sandbox's words as text. `acp_spec.sdk.sandbox` starts it.
"""
