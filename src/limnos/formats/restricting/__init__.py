# SPDX-License-Identifier: Apache-2.0
"""Restricted files: a table's data files without the rows and values hidden from a restricted user.

May import pyarrow, pyiceberg, `limnos.formats.preview_cells` and `limnos.model.errors`; so only worker processes import
this package. Must not know users or stores.
"""
