# SPDX-License-Identifier: Apache-2.0
"""Lance tables of a pipeline: which catalogs have them, and what a step that writes one may not ask of it.

Compares declarations with the formats of catalogs. Must not know Spark or Lance's library.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import suppress

from limnos.client import Client
from limnos.client.errors import DeniedError, NotFoundError
from limnos.model.extras import install_hint
from limnos.model.kinds import GENERIC_PROVIDER
from limnos.pipeline.declaration import Pipeline, StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.problems import InvalidPipeline, Problem

LANCE_MODES = frozenset({WriteMode.REPLACE, WriteMode.APPEND, WriteMode.MERGE, WriteMode.PARTITIONS})
"""The write modes of Lance tables."""
STORAGE_MANAGED = (
    "is a Lance table whose versions its storage keeps, so the server cannot commit them together with a run's other "
    "tables. Write another table; a run creates it with managed_versioning=true"
)
"""The reason why such a table cannot be an output."""
_ONLY_LANCE = ("vectors", "indexes", "embed")
_ONLY_ICEBERG = ("sort", "columns")


def catalog_providers(client: Client, pipeline: Pipeline) -> dict[str, str | None]:
    """Return the providers of the metalake's catalogs, but for catalogs that the caller may not see. For a caller who
    may not list them, those of the catalogs of the pipeline's steps.
    """
    try:
        return {one.name: one.provider for one in client.catalogs.list()}
    except (DeniedError, NotFoundError):
        providers = {}
    for name in pipeline.catalogs:
        with suppress(DeniedError, NotFoundError):  # the missing right is reported with the other rights
            providers[name] = client.catalogs.get(name).provider
    return providers


def lance_catalogs(providers: Mapping[str, str | None]) -> frozenset[str]:
    """Return the catalogs that have Lance tables, among catalogs with their providers."""
    return frozenset(name for name, provider in providers.items() if provider == GENERIC_PROVIDER)


def require_lance_outputs(
    pipeline: Pipeline, providers: Mapping[str, str | None], *, reads: Mapping[str, frozenset[Parts]]
) -> None:
    """Raise InvalidPipeline with the problems that `lance_problems` yields."""
    if problems := tuple(lance_problems(pipeline, providers, reads=reads)):
        raise InvalidPipeline(problems)


def lance_problems(
    pipeline: Pipeline, providers: Mapping[str, str | None], *, reads: Mapping[str, frozenset[Parts]]
) -> Iterator[Problem]:
    """Yield a problem for each key that a step's table does not have in its format, and for each step of Lance tables
    without Lance's library.

    `providers` has the catalogs that the caller may see: of tables in others the format is not known. `reads` are the
    tables that each step reads.
    """
    catalogs = lance_catalogs(providers)
    is_library_missing = importlib.util.find_spec("lance") is None
    for step in pipeline.steps:
        tables = (step.table, *reads.get(step.name, ()))
        if is_library_missing and any(table[0] in catalogs for table in tables):
            verb = "writes" if step.table[0] in catalogs else "reads"
            message = f"{step.name} {verb} a Lance table, and Lance's library is not installed here"
            yield Problem(f"{message}: {install_hint('lance')}", step.at)
        if step.table[0] in providers:
            yield from _key_problems(step, is_lance=step.table[0] in catalogs)


def _key_problems(step: StepDeclaration, *, is_lance: bool) -> Iterator[Problem]:
    if not is_lance:
        for key in _ONLY_LANCE:
            if getattr(step, key):
                yield Problem(f"{step.name}: '{key}' is for Lance tables, and its catalog has none", step.at)
        return
    if step.write.mode not in LANCE_MODES:
        modes = ", ".join(sorted(mode.value for mode in LANCE_MODES))
        yield Problem(
            f"{step.name} writes a Lance table, for which 'write: {step.write.mode.value}' is not there: use {modes}",
            step.at,
        )
    if step.write.mode is WriteMode.PARTITIONS and not step.partition:
        yield Problem(
            f"{step.name} replaces partitions, and none are declared: write 'partition', as partition: [day]", step.at
        )
    if step.partition and step.write.mode is not WriteMode.PARTITIONS:
        yield Problem(
            f"{step.name} writes a Lance table, which has no partitions: leave 'partition' out, or write"
            " 'write: partitions', which replaces the rows of the same values",
            step.at,
        )
    for name in sorted({each.name for each in step.indexes if [one.name for one in step.indexes].count(each.name) > 1}):
        yield Problem(f"{step.name} declares the index {name} twice: leave one out", step.at)
    for key in _ONLY_ICEBERG:
        if getattr(step, key):
            yield Problem(f"{step.name} writes a Lance table, which has no '{key}': leave it out", step.at)
