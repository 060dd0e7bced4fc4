# SPDX-License-Identifier: Apache-2.0
"""Conflicts between pipelines that declare the same table and would overwrite each other's rows.

Conflicts are detected in the declarations that the server stores, whether or not the tables exist. Pipelines that the
caller may not load are not considered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from limnos.client import Client
from limnos.client.activity.runs import Pipeline as Declared
from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.client.values import Json
from limnos.names import display
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.lance_outputs import catalog_providers
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.rights import unwritable_catalogs
from limnos.pipeline.side_tables import QUARANTINE, side_table, tables_of


def declared_by_others(client: Client, pipeline: Pipeline) -> Iterator[Problem]:
    """Yield a problem for each table of a step, side tables included, that another pipeline declares. Sends one request
    per visible pipeline.
    """
    others = _declared_tables(client, but=pipeline.name)
    for step in pipeline.steps:
        for table in tables_of(pipeline, step):
            if (other := others.get(table)) is not None:
                yield Problem(
                    f"{step.name}: {display.render(table)} is also a table of pipeline '{other}': they would overwrite"
                    " each other's rows. Write another table, or remove it from that pipeline first (run the changed"
                    f" pipeline, or 'limnos delete pipeline {other}')",
                    step.at,
                )


def require_own_tables(client: Client, pipeline: Pipeline) -> dict[str, str | None]:
    """Return the providers of the pipeline's catalogs.

    Raises InvalidPipeline if another pipeline declares one of its tables, or a catalog has neither Iceberg nor Lance
    tables.
    """
    providers = catalog_providers(client, pipeline)
    if problems := (*unwritable_catalogs(pipeline, providers), *declared_by_others(client, pipeline)):
        raise InvalidPipeline(problems)
    return providers


def find_declaration(client: Client, name: str) -> Declared | None:
    """Load the declaration that the server stores; None if there is none or the caller may not see it."""
    try:
        return client.pipelines.load(name)
    except (DeniedError, NotFoundError):
        return None


def put_declaration(
    client: Client, pipeline: Pipeline, *, declaration: Mapping[str, object], before: Declared | None
) -> None:
    """Store a pipeline's declaration on the server. Idempotent.

    Args:
        client: A client of the server.
        pipeline: The pipeline to store.
        declaration: The declaration as JSON.
        before: The declaration that the server had before.

    Raises:
        InvalidPipeline: Another pipeline now declares one of its tables. The new declaration is reverted. If two
            pipelines are declared at the same time, at least one detects the other.
    """
    after = client.pipelines.put(pipeline.name, declaration, comment=pipeline.comment)
    if before is not None and before.version == after.version:
        return
    try:
        require_own_tables(client, pipeline)
    except InvalidPipeline:
        restore_declaration(client, pipeline.name, before=before)
        raise


def restore_declaration(client: Client, name: str, *, before: Declared | None) -> None:
    """Give a pipeline the declaration again that it had before, or drop one that is new, as far as the server allows
    it.
    """
    with suppress(ClientError):  # a run has begun, or the rights changed: the caller reports the conflict
        if before is None:
            client.pipelines.drop(name)
        else:
            client.pipelines.put(name, before.declaration or {}, comment=before.comment)


def _declared_tables(client: Client, *, but: str) -> dict[Parts, str]:
    """Map each table to the pipeline that declares it, for pipelines visible to the caller except `but`."""
    try:
        names = [each.name for each in client.pipelines.list() if each.name != but]
    except DeniedError:
        return {}
    results: dict[Parts, str] = {}
    for name in names:
        try:
            declaration = client.pipelines.load(name).declaration
        except (DeniedError, NotFoundError):  # it was dropped, or the right to load it was revoked, after the listing
            continue
        for table in _tables(declaration):
            results.setdefault(table, name)
    return results


def _tables(declaration: Json | None) -> Iterator[Parts]:
    """Yield the tables of a recorded declaration; none for a declaration of another form."""
    steps = (declaration or {}).get("steps")
    for step in steps if isinstance(steps, list) else ():
        path = step.get("table") if isinstance(step, dict) else None
        if not isinstance(path, list) or not path:
            continue
        table = tuple(map(str, path))
        yield table
        rules = step.get("expectations")
        if any(
            isinstance(rule, dict) and rule.get("action") == "quarantine"
            for rule in (rules if isinstance(rules, list) else ())
        ):
            yield side_table(table, QUARANTINE)
