"""Options of SET: which are applied, which are accepted without effect, and which are refused.

May import `sqlpp`. Must not know statements other than SET. A hint to AsterixDB's compiler changes no result, so it is
accepted and ignored. An option that would change results, and an unknown one, is refused by name.
"""

from __future__ import annotations

from typing import Final

from limnos.sqlpp import tree
from limnos.sqlpp.errors import compilation

HINTS: Final = frozenset({
    "compiler.aggregate.distinct.hash", "compiler.aggregate.distinct.hash.memory", "compiler.arrayindex", "compiler.batch.lookup",
    "compiler.cbo", "compiler.cbotest", "compiler.column.filter", "compiler.copy.to.write.buffer.size", "compiler.deltalake.filesplits",
    "compiler.disjunction.as.join", "compiler.disjunction.hash.threshold", "compiler.external.field.pushdown",
    "compiler.externalscanmemory", "compiler.extract.common.expression.limit", "compiler.forcejoinorder", "compiler.framesize",
    "compiler.groupmemory", "compiler.index.covering", "compiler.indexonly", "compiler.internal.sanitycheck", "compiler.joinmemory",
    "compiler.min.memory.allocation", "compiler.ordered.fields", "compiler.parallelism", "compiler.queryplanshape",
    "compiler.sort.parallel", "compiler.sort.samples", "compiler.sortmemory", "compiler.subplan.merge",
    "compiler.subplan.nestedpushdown", "compiler.textsearchmemory", "compiler.vector.kmultiplier", "compiler.vector.trainseed",
    "compiler.windowmemory", "hash_merge", "import-private-functions", "inline_with", "rewrite_attempt_batch_assign",
    "rewrite_in_as_or", "rewrite_internal_queryuid_pk", "rewrite_or_as_join", "simfunction", "simthreshold",
})  # fmt: skip
"""Names of AsterixDB's options that only affect its query plans, or operators that do not exist here."""
FEEDS: Final = "wait-for-completion-feed"


def check_option(statement: tree.SetOption) -> None:
    """Check the name of an option. Raises SqlppError (ASX1079) for one that is not supported."""
    name = statement.name.lower()
    if name in HINTS:
        return
    reason = ": there are no feeds" if name == FEEDS else ""
    raise compilation(f"Query parameter {statement.name} is not supported{reason}", statement.at)
