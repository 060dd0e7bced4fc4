# SPDX-License-Identifier: Apache-2.0
"""Expectations of a step: row rules, counted during the write, and table rules, queried on the branch.

The runner's interface to expectations. `RowRules` observes a write, or splits staged rows. `table_findings` queries the
written branch. `has_failed_expectation` decides whether the findings forbid publishing.
"""

from __future__ import annotations

from limnos.pipeline.engine.expectations.judgement import has_failed_expectation
from limnos.pipeline.engine.expectations.rows import RowRules, RuleCounts, StagedRows
from limnos.pipeline.engine.expectations.tables import table_findings

__all__ = ["RowRules", "RuleCounts", "StagedRows", "has_failed_expectation", "table_findings"]
