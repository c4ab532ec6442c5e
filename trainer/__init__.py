"""Learning from recorded sessions: the planner first, then the recovery policy.

Empty for now. It will read trajectories through `gateway.stores.reader` and give back data (policy
files with a manifest), never code that the gateway imports.
"""
