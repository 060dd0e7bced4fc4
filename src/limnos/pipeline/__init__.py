"""Pipelines on Spark: declared in a file or in Python, published all or nothing.

Job: what a pipeline says (`declaration`), how it is read, checked and planned, and how it runs: each step on a branch
of its table, all of them published by one commit (decision record 0039). It talks to a server by its protocols only and
must not import the server's rooms; Spark is in `engine`.
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
