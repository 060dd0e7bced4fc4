# SPDX-License-Identifier: Apache-2.0
"""Catalogs of other systems as lists of Iceberg tables: each entry points to the metadata file of a table or view."""
