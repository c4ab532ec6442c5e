"""Wire tables: errors, routes, header and metadata names. Data and lookups; no IO, no decisions."""
