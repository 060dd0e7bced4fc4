# SPDX-License-Identifier: Apache-2.0
"""Iceberg table metadata, without I/O: build, check and change the raw JSON document of a table.

The document is never decoded into a closed model, so unknown fields survive. May import the standard library, msgspec,
`limnos.formats.avro`, and of `limnos.model` the errors and restrictions; `offloaded` loads pyiceberg's parser of
filters on demand. Must not know HTTP, SQL, files or permissions.
"""
