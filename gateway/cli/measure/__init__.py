"""`acp doctor --measure`: probes that end by themselves, claims they are held against, a model.

A probe measures and says nothing of good or bad; `claims` compares; `capacity` is arithmetic only.
"""
