"""Conversion between Gravitino's JSON and other formats: columns, partitioning, sort orders, and changes of them.

May import `limnos.formats.iceberg` and `limnos.model`. Pure: values in, values out. Must not know HTTP, services or the
store.
"""
