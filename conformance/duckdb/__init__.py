# SPDX-License-Identifier: Apache-2.0
"""DuckDB's own tests of its Iceberg extension against the server."""
