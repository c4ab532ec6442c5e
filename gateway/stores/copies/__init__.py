"""Copies of recorded sessions that leave a gateway, and come into another: export and import.

Originals byte for byte, the newest line of each session. Used by commands; never by a gateway that
runs.
"""
