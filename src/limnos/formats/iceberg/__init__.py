"""Iceberg table metadata, sans I/O: build, check and change the raw JSON document of a table.

The document is never put through a closed model, so fields that this code does not know survive. May import the
standard library, msgspec and `limnos.model.errors`. Must not know HTTP, SQL, files or permissions.
"""
