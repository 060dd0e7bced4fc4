"""Scans of Iceberg tables, planned: from metadata, a request and the bytes of manifests to the files that are to be read. Pure.

May import the standard library, msgspec, pyiceberg (in the modules that a worker process loads) and `limnos.model.errors`. Must not know who
reads files, who may read what, or where a plan is kept.
"""
