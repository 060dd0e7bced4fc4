# SPDX-License-Identifier: Apache-2.0
"""Pipelines on Spark, declared in a file or in Python. A run publishes all of its tables or none.

Contains the declaration (`declaration`), its parser, its checks and plan, and the run. Each step writes a branch of its
table, and one commit publishes all branches (decision record 0039). The package uses the server's protocols only. It
must not import the server's packages. Only `engine` imports Spark.
"""

from __future__ import annotations

from limnos.pipeline.engine.lineage import lineage_of
from limnos.pipeline.graph import order_steps
from limnos.pipeline.lineage import QueryLineage
from limnos.pipeline.outcomes import ExpectationFinding, ReadPin, StepBranch, StepOutcome
from limnos.pipeline.problems import InvalidPipeline, InvalidQuery, Problem
from limnos.pipeline.project import Project, load
from limnos.pipeline.python import pipeline, step
from limnos.pipeline.reads import all_reads

__all__ = [
    "ExpectationFinding",
    "InvalidPipeline",
    "InvalidQuery",
    "Problem",
    "Project",
    "QueryLineage",
    "ReadPin",
    "StepBranch",
    "StepOutcome",
    "all_reads",
    "lineage_of",
    "load",
    "order_steps",
    "pipeline",
    "step",
]
