"""The cold tier: files that have left the trajectory log, in an object store, as originals.

Used by a process of its own (`child`), by the records' feed and by commands; never by the gateway's
loop. pyarrow and fsspec are extras (`records`): nothing here imports them before it needs them.
"""
