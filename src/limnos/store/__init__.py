# SPDX-License-Identifier: Apache-2.0
"""The store on SQLite and PostgreSQL: the tree, the clocks, the change feed, the access graph, and the state of
background work.

Must not know policies, wire formats or caching. Reads return frozen values; mutations run inside a transaction that the
backend opened, with the zone's locks held.
"""
