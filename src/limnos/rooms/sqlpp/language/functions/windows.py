# SPDX-License-Identifier: Apache-2.0
"""Registers the names and arities of window functions.

Must not know rows: `evaluator.windows` computes the values. Any aggregate followed by OVER is a window function, too.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.functions.table import window

for _name, _least, _most in (
    ("row_number", 0, 0),
    ("rank", 0, 0),
    ("dense_rank", 0, 0),
    ("percent_rank", 0, 0),
    ("cume_dist", 0, 0),
    ("ntile", 1, 1),
    ("lag", 1, 3),
    ("lead", 1, 3),
    ("first_value", 1, 1),
    ("last_value", 1, 1),
    ("nth_value", 2, 2),
    ("ratio_to_report", 1, 1),
):
    window(_name, least=_least, most=_most)
