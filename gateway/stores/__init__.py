"""Durable state behind small ports; the only place that knows RocksDB and the records database."""
