"""Pages of objects of external systems: schemas, tables, views and topics behind connector catalogs.

May import `model`, `names`, `services` and the console's shared modules.
"""
