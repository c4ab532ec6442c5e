"""The pure engine: `step(state, event) -> (state, commands)` and the pure work around it.

No clock, no chance, no IO: time and chance ride on events. Replay feeds the journal through `step`.
"""
