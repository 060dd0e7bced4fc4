# SPDX-License-Identifier: Apache-2.0
"""Statements about objects of the tree: nodes, their documents, owners, storage locations, attachments and the trash.

May import `model`, `names` and the modules of `limnos.store` below `tx`. Must not know backends.
"""
