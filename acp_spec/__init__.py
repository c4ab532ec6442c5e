"""ACP v1: the protocol as types, tables, codecs and an SDK; it knows nothing of the gateway."""
