# SPDX-License-Identifier: Apache-2.0
"""Calls about objects of the tree: catalogs, namespaces, tables, views, functions, models, filesets, Lance tables."""
