# SPDX-License-Identifier: Apache-2.0
"""Static types: the type that AsterixDB's compiler infers for each expression of a plan.

May import plans, the tree, `stored`, the table of functions and `values.model`. Must not know rows, datasets' files or
an engine.
"""
