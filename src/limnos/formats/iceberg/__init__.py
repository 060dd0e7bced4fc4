"""Iceberg table metadata, without I/O: build, check and change the raw JSON document of a table.

The document is never decoded into a closed model, so unknown fields survive. May import the standard library, msgspec
and `limnos.model.errors`. Must not know HTTP, SQL, files or permissions.
"""
