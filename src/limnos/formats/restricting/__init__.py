# SPDX-License-Identifier: Apache-2.0
"""Restricted files: a table's data files without the rows and values hidden from a restricted user.

Must not know users or stores.
"""
