"""SQL: the tree, the clocks, the change feed and the access graph, on SQLite and PostgreSQL.

May import `names`, `model`, `config`, `telemetry`. Knows no policy, no wire format and no caching. Reads return frozen
values; mutations run inside a transaction that the backend opened, with the zone's locks held.
"""
