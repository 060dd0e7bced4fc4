"""Executor of maintenance operations on Spark: leases operations from a server, and carries them out.

May import `spark`, `client` and `model`. Must not know the server's rooms: operations come over HTTP.
"""
