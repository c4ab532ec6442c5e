"""The dashboard's questions to the records, one subject per file. Pure: SQL, and what comes back.

SQL stands here as text that no request changes; whatever a caller says is bound as a parameter, and
every question is about one tenant. Parts of a condition are chosen from tables, never written.
"""
