"""Table maintenance as pure functions: the assessment of a table by its metadata, and the selection of what may be
removed from it.

May import `formats.iceberg`, `formats.avro` and msgspec. Must not read files or know how operations are carried out.
"""
