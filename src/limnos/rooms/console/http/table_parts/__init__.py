# SPDX-License-Identifier: Apache-2.0
"""Tabs of the pages of tables, one per module, and the page about the maintenance of a catalog's tables.

Imports as its modules do, but no page of another package.
"""
