# SPDX-License-Identifier: Apache-2.0
"""Iceberg table metadata, without I/O: build, check and change the raw JSON document of a table.

The document is never decoded into a closed model, so unknown fields survive. Must not know HTTP, SQL, files or
permissions.
"""
