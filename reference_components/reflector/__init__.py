"""The hotline's reflector: judges the calls, and composes an answer whose claims name their
source.
"""
