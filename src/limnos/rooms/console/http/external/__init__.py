# SPDX-License-Identifier: Apache-2.0
"""Pages of objects of external systems: schemas, tables, views and topics behind connector catalogs.

Imports as its modules do.
"""
