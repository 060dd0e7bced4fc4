"""SQL and nothing else: the tree, the clock, the change feed and the access graph on SQLite and PostgreSQL.

May import `names`, `model`, `config`, `telemetry`. Knows no policy, no wire format, no caching: reads return frozen
values, mutations run inside a transaction that the backend opened, with the zone's locks held.
"""
