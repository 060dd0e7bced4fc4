"""SQL: the tree, the clocks, the change feed and the access graph, on SQLite and PostgreSQL.

May import `names`, `model`, `config`, `telemetry`. Must not know policies, wire formats or caching. Reads return frozen
values; mutations run inside a transaction that the backend opened, with the zone's locks held.
"""
