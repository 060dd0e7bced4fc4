"""Table maintenance as pure functions: the assessment of a table by its metadata, and the selection of its removable
parts.

May import `formats.iceberg`, `formats.avro` and msgspec. Must neither read files nor know the execution of operations.
"""
