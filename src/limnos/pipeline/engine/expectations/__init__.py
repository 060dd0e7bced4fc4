"""Expectations of a step: rules of rows counted while they are written, rules of the table asked of its branch.

Job: what a runner needs to hold a step to what is declared of it. `RowRules` watches a write, or parts rows from a stage;
`table_findings` asks the written branch; `broken_sentence` says whether the step may be published.
"""

from __future__ import annotations

from limnos.pipeline.engine.expectations.judgement import broken_sentence
from limnos.pipeline.engine.expectations.rows import RowRules, RuleCounts, StagedRows
from limnos.pipeline.engine.expectations.tables import table_findings

__all__ = ["RowRules", "RuleCounts", "StagedRows", "broken_sentence", "table_findings"]
