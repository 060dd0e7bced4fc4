# SPDX-License-Identifier: Apache-2.0
"""Scan planning for Iceberg tables: computes the files to read, from metadata, a scan request and the bytes of
manifests. Pure.

May import the standard library, msgspec, pyiceberg (in modules that a worker process loads), `limnos.formats.avro`,
`limnos.formats.iceberg` and `limnos.model.errors`. Must not know rights, file access or storage of plans.
"""
