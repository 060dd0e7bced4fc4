"""Scan planning for Iceberg tables: from metadata, a request and the bytes of manifests to the files to read. Pure.

May import the standard library, msgspec, pyiceberg (in modules that a worker process loads) and `limnos.model.errors`.
Must not know who reads files, rights, or where a plan is stored.
"""
