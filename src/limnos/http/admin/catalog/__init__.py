# SPDX-License-Identifier: Apache-2.0
"""Routes about objects of the tree: lists, search, previews, checks, moves, nesting, transactions and the trash.

Imports as its modules do.
"""
