# SPDX-License-Identifier: Apache-2.0
"""Calls about objects of the tree: catalogs, namespaces, tables, views, functions, models, filesets and Lance tables.

May import `model`, `names` and the shared modules of `limnos.client`.
"""
