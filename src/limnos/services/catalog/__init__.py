# SPDX-License-Identifier: Apache-2.0
"""The objects of the tree: metalakes, catalogs, namespaces, tables, views, models and filesets, regardless of their
format.
"""
