"""`make gen`: what is generated from acp.proto and the wire tables, written into the package.

Run as `python -m acp_spec.codec.generate`. The same input gives the same bytes; nothing reads the
clock or the environment. Nothing in the product imports this package.
"""
