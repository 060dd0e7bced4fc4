# SPDX-License-Identifier: Apache-2.0
"""The similarity operator `~=`: its similarity function and its threshold.

Must not know scopes or the options of a request.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.functions import FUNCTIONS

Similarity = tuple[str, str, float]
"""The meaning of `~=`: a function of two values, and the operator and number that its result is compared with."""
SIMILAR: Similarity = ("similarity_jaccard", ">=", 0.5)


def similar(
    node: tree.OperationChain, operands: tuple[plan.Expression, ...], *, similarity: Similarity
) -> plan.Expression:
    """Rewrite `a ~= b` to a comparison of the similarity function's result with the threshold."""
    function, operator, bound = similarity
    value = plan.FunctionCall(node.at, FUNCTIONS[function], operands)
    return plan.Operate(node.at, (operator,), (value, plan.Constant(node.at, bound)))
