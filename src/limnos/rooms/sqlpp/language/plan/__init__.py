# SPDX-License-Identifier: Apache-2.0
"""Plans: queries with all names resolved, which the evaluator executes and engines receive.

Contains only frozen nodes. Must not know a store. Variables are slots, numbered through a whole statement. Datasets are
references that the binder has resolved, and functions are entries of the table of functions.
"""

from limnos.rooms.sqlpp.language.plan.expressions import (
    Aggregate,
    ArrayOf,
    BagOf,
    Between,
    CaseOf,
    Constant,
    ElementOf,
    EncodedPlan,
    Exists,
    Expression,
    FieldOf,
    FunctionCall,
    IsTest,
    LetIn,
    Local,
    Negated,
    ObjectOf,
    Operate,
    PlanNode,
    Quantified,
    Scan,
    SignOf,
    SliceOf,
)
from limnos.rooms.sqlpp.language.plan.queries import (
    Block,
    ForEach,
    Group,
    Let,
    Order,
    Projection,
    Query,
    Select,
    Subquery,
    WindowCall,
)
