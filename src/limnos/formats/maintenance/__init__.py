"""Table maintenance as pure functions: what a table's metadata says about its health, and what may be removed from it.

May import `formats.iceberg`, `formats.avro` and msgspec. Must not read files, nor know who carries out an operation.
"""
