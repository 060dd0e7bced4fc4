"""Routes about storage, maintenance of tables, background tasks, nodes and settings.

Imports as its modules do.
"""
