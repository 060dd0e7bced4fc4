# SPDX-License-Identifier: Apache-2.0
"""Side tables of a step: quarantined rows, and malformed rows of files.

Defines their names, and selects the side tables of a step by its declaration. Must not know Spark or servers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from limnos.pipeline import declaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.source_declarations import DeclaredSource, Files, Kafka, MalformedRowPolicy, Stream

QUARANTINE: Final = "__quarantine"
MALFORMED: Final = "__malformed"


def side_table(table: Parts, suffix: str) -> Parts:
    """Return the name of a side table: the table's name with a suffix."""
    return (*table[:-1], f"{table[-1]}{suffix}")


def tables_of(
    pipeline: declaration.Pipeline, step: declaration.StepDeclaration, *, sources: Collection[str] | None = None
) -> tuple[Parts, ...]:
    """Return the tables that a step may write: its own, its quarantine table, its table of malformed rows.

    `sources` are the sources that the step reads. If None, every source whose name occurs in the query's text counts,
    so the result may include tables that the step does not write.
    """
    results = [step.table]
    quarantines = any(rule.action is declaration.ExpectationAction.QUARANTINE for rule in step.expectations)
    if quarantines or step.embed is not None:
        results.append(side_table(step.table, QUARANTINE))
    names = [source.name for source in pipeline.sources if _keeps_rows_aside(source)]
    if any(names_source(step, name) if sources is None else name in sources for name in names):
        results.append(side_table(step.table, MALFORMED))
    return tuple(results)


def _keeps_rows_aside(source: DeclaredSource) -> bool:
    files = source.kind.files if isinstance(source.kind, Stream) else source.kind
    return isinstance(files, Files | Kafka) and files.malformed is MalformedRowPolicy.KEEP


def names_source(step: declaration.StepDeclaration, source: str) -> bool:
    """Return whether a step names a source. Of a query, every occurrence of the word counts."""
    if isinstance(step.body, declaration.Load):
        return step.body.source == source
    if isinstance(step.body, declaration.Sql):
        return names_word(step.body.text, source)
    return source in step.body.inputs.values()


def selects_from(step: declaration.StepDeclaration, source: str) -> bool:
    """Return whether a step reads a source, for people: of a query, only a name where a table may stand counts, and no
    alias or part of a longer name. A query without Spark's parser cannot be read exactly.
    """
    if not isinstance(step.body, declaration.Sql):
        return names_source(step, source)
    name_pattern = rf"(?:\b(?:from|join|table)|,)[\s(]*`?{re.escape(source)}`?(?![\w.])"
    return re.search(name_pattern, step.body.text, re.IGNORECASE) is not None


def names_word(query: str, word: str) -> bool:
    """Return whether a query has a word, in letters of any case."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", query, re.IGNORECASE) is not None
