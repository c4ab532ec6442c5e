"""The structured replay store: every session as rows that SQL can ask, fed from the log.

`rows` shapes (pure), `store` speaks to ClickHouse over HTTP, `feed` reads the trajectory log on,
`verify` compares, `child` is the process that holds the embedded engine and the feed. The gateway's
own process imports none of it until somebody asks a question. Rule: the trajectory log is the
truth; whatever is in the store can be made again from it.
"""
