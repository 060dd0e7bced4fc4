# SPDX-License-Identifier: Apache-2.0
"""Statements about objects of the tree: nodes, their documents, owners, storage locations, attachments and the trash.

Must not know backends.
"""
