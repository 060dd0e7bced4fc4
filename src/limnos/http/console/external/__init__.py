"""Pages of objects of external systems: schemas, tables, views and topics behind connector catalogs.

Imports as its modules do.
"""
