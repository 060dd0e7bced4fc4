# SPDX-License-Identifier: Apache-2.0
"""Rights that a run needs, checked with the server before anything is written, and the missing grants.

Checks for each table that a pipeline reads or creates whether it exists, and whether the caller has the rights that a
run needs. For each missing right it returns the `limnos grant` command. Must not know Spark. It changes nothing on the
server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from limnos.client import Client
from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.client.values import Explanation, Json, LanceTable
from limnos.model.kinds import GENERIC_PROVIDER, ICEBERG_PROVIDER, REST_PROVIDERS
from limnos.names import display
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.lance_checkpoints import lance_checkpoint
from limnos.pipeline.lance_outputs import STORAGE_MANAGED
from limnos.pipeline.problems import Problem, nearest_word
from limnos.pipeline.reads import StepReads
from limnos.pipeline.side_tables import tables_of

_GRANT = re.compile(r"Grant (?P<privilege>\w+)(?: or \w+)* on (?P<kind>[a-z_]+)(?: (?P<name>\S.*))? to a role of .*\.")
_IN_TREE = frozenset({"catalog", "namespace", "schema", "table"})
"""The kinds for which `--on PATH` needs no `--kind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRight:
    """A right that the caller lacks: the table, the purpose, and the commands that grant it."""

    table: Parts
    needed_for: str
    grants: tuple[str, ...]
    """`limnos grant` commands, in which ROLE is any role of the caller; or the server's advice as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLookup:
    """The server's information about a table. `metadata` is None for a view, a Lance table and a missing table."""

    kind: str
    """`table`, `view`, `absent`, `hidden` (not visible to the caller) or `outside` (its catalog is not visible)."""
    metadata: Json | None = None
    lance: LanceTable | None = None
    """The description of a Lance table."""
    checkpoint: Mapping[str, str] = field(default_factory=dict)
    """Of the Lance table of an incremental step, its checkpoint, as far as it can be read."""


def look_up_tables(client: Client, tables: frozenset[Parts], *, catalogs: frozenset[str]) -> dict[Parts, TableLookup]:
    """Look up each table on the server. Tables of catalogs that are not among `catalogs`, the visible ones, get the
    kind `outside`.
    """
    return {
        table: _look_up_table(client, table) if table[0] in catalogs else TableLookup(kind="outside")
        for table in sorted(tables)
    }


def with_checkpoints(
    client: Client, lookups: Mapping[Parts, TableLookup], *, pipeline: Pipeline
) -> dict[Parts, TableLookup]:
    """Return the lookups with the checkpoints of the Lance tables of incremental steps, whose files have them."""
    entries = dict(lookups)
    for table in {step.table for step in pipeline.steps if step.incremental} & set(lookups):
        lance = lookups[table].lance
        if lance is not None and lance.version is not None:
            with suppress(ClientError, ImportError, OSError, RuntimeError, ValueError):
                entries[table] = replace(lookups[table], checkpoint=lance_checkpoint(client, table))
    return entries


def absent_tables(
    reads: Mapping[str, StepReads],
    lookups: Mapping[Parts, TableLookup],
    *,
    pipeline: Pipeline,
    near: Callable[[Parts], Iterable[str]] = lambda _: (),
) -> Iterator[Problem]:
    """Yield a problem for each table that is read, that no step creates, and that does not exist or is invisible.

    `near` returns the paths of tables that may be meant in place of a missing one, beside those of the pipeline.
    """
    results = {step.table for step in pipeline.steps}
    existing_tables = {table for table, one in lookups.items() if one.metadata}
    for step in pipeline.steps:
        usable = (results | existing_tables) - _tables_made_from(step.table, reads, pipeline=pipeline)
        usable_names = {*map(display.render, usable)}
        unusable = {*map(display.render, results - usable)}
        for table in sorted(reads[step.name].tables - results):
            if lookups[table].kind == "absent" and not any(loop.may_make(table) for loop in pipeline.loops):
                name = display.render(table)
                candidates = sorted(usable_names.union(near(table)) - unusable)
                near_name = nearest_word(name, candidates)
                message = f"{step.name} reads {name}, which does not exist, or you may not see it{near_name}"
                yield Problem(message, step.at)


def _tables_made_from(table: Parts, reads: Mapping[str, StepReads], *, pipeline: Pipeline) -> set[Parts]:
    """Return a step's table and the tables of all steps that read it, directly or through others."""
    derived = {table}
    while further := {one.table for one in pipeline.steps if reads[one.name].tables & derived} - derived:
        derived |= further
    return derived


def missing_rights(
    client: Client, pipeline: Pipeline, *, reads: Mapping[str, StepReads], lookups: Mapping[Parts, TableLookup]
) -> tuple[MissingRight, ...]:
    """Return the rights that the caller lacks for a run of the pipeline: first the rights on tables."""
    results = {step.table for step in pipeline.steps}
    missing: list[MissingRight] = []
    for table in sorted({table for one in reads.values() for table in (*one.tables, *one.past)} - results):
        kind = lookups[table].kind
        if kind not in {"outside", "absent"}:
            missing += _lacking(
                client, table, action="view_load" if kind == "view" else "table_load", needed_for="read"
            )
    for table in written_tables(pipeline, reads):
        missing += _rights_to_create(client, table, kind=lookups[table].kind)
    return (*dict.fromkeys(missing), *_rights_to_run(client, pipeline))


def written_tables(pipeline: Pipeline, reads: Mapping[str, StepReads]) -> tuple[Parts, ...]:
    """Return the tables that a run may write, in the order of the steps."""
    return tuple(
        table for step in pipeline.steps for table in tables_of(pipeline, step, sources=reads[step.name].sources)
    )


def grants_lacking_now(client: Client, *, read: Iterable[Parts], written: Iterable[Parts]) -> tuple[str, ...]:
    """Return the commands that grant the caller's missing rights on these tables, by a new request; advice if no grant
    helps.
    """
    outputs = sorted({*written})
    results = {table: _look_up_table(client, table).kind for table in {*read, *outputs}}
    missing_grants = [
        one
        for table in sorted({*read})
        if results[table] != "absent"
        for one in _lacking(
            client, table, action="view_load" if results[table] == "view" else "table_load", needed_for="read"
        )
    ]
    missing_grants += [one for table in outputs for one in _rights_to_create(client, table, kind=results[table])]
    return tuple(dict.fromkeys(line for one in missing_grants for line in one.grants))


def commands_text(lines: Iterable[str]) -> str:
    """Return the lines of `grants_lacking_now` as one text: a command in quotes, unless it has quotes of its own."""
    return "; ".join(f"'{line}'" if line.startswith("limnos ") and "'" not in line else line for line in lines)


def _look_up_table(client: Client, table: Parts) -> TableLookup:
    try:
        return TableLookup(kind="table", metadata=client.tables.load(table).metadata)
    except DeniedError:
        return TableLookup(kind="hidden")
    except NotFoundError:
        pass
    try:
        client.views.load(table)
    except DeniedError:
        return TableLookup(kind="hidden")
    except NotFoundError:
        return _look_up_lance_table(client, table)
    return TableLookup(kind="view")


def _look_up_lance_table(client: Client, table: Parts) -> TableLookup:
    try:
        return TableLookup(kind="table", lance=client.lance.load(table))
    except DeniedError:
        return TableLookup(kind="hidden")
    except NotFoundError:
        return TableLookup(kind="absent")


def storage_managed_outputs(pipeline: Pipeline, lookups: Mapping[Parts, TableLookup]) -> Iterator[Problem]:
    """Yield a problem for each Lance table among the outputs whose versions the storage keeps."""
    for step in pipeline.steps:
        for table in tables_of(pipeline, step):
            lance = lookups[table].lance if table in lookups else None
            if lance is not None and not lance.managed:
                yield Problem(f"{display.render(table)} {STORAGE_MANAGED}", step.at)


def _rights_to_create(client: Client, table: Parts, *, kind: str) -> Iterator[MissingRight]:
    if kind == "hidden":  # the table may not exist: grant visibility on its parent
        for one in _lacking(client, table, action="table_load", needed_for="see whether there is"):
            own, above = _shell_quote(display.render(table)), _shell_quote(display.render(table[:-1]))
            lines = (line.replace(f" --on {own} ", f" --on {above} ") for line in one.grants)
            yield MissingRight(table=table, needed_for=one.needed_for, grants=tuple(lines))
        return
    if kind == "table":
        yield from _lacking(client, table, action="table_load", needed_for="read")
        yield from _lacking(client, table, action="table_commit", needed_for="write")
        return
    parent = _nearest_parent(client, table)
    if len(parent) < len(table) - 1:  # the creator of a namespace owns it and may create tables in it
        yield from _lacking(client, parent, action="namespace_create", needed_for="create namespaces in")
    else:
        yield from _lacking(client, parent, action="table_create", needed_for="create tables in")


def _nearest_parent(client: Client, table: Parts) -> Parts:
    """Return the innermost existing namespace of a table's path, or the catalog."""
    for length in range(len(table) - 1, 1, -1):
        try:
            client.namespaces.load(table[:length])
        except NotFoundError:
            continue
        except DeniedError:
            pass
        return table[:length]
    return table[:1]


def unseen_catalog_problem(client: Client, catalog: str, *, visible: Iterable[str]) -> Problem | MissingRight:
    """Describe why a pipeline's catalog is not visible: the caller may not load it, or it does not exist."""
    explanation = client.access.explain("catalog_load", (catalog,))
    if not explanation.decision.allowed:
        return MissingRight(table=(catalog,), needed_for="see, if it exists,", grants=_lines(explanation))
    near = nearest_word(catalog, sorted(visible))
    return Problem(f"there is no catalog '{catalog}' in this metalake{near or ': create it, or name another one'}")


def unwritable_catalogs(pipeline: Pipeline, providers: Mapping[str, str | None]) -> Iterator[Problem]:
    """Yield a problem for each catalog of the pipeline that has neither Iceberg nor Lance tables. `providers` has those
    of the catalogs that the caller may see.
    """
    for catalog in pipeline.catalogs:
        provider = providers.get(catalog, ICEBERG_PROVIDER)
        if provider not in (*REST_PROVIDERS, ICEBERG_PROVIDER, GENERIC_PROVIDER):
            yield Problem(
                f"catalog '{catalog}' has provider {provider}, and pipelines write only Iceberg and Lance tables: "
                f"name a catalog of provider {ICEBERG_PROVIDER} or {GENERIC_PROVIDER}",
                pipeline.at,
            )


def _rights_to_run(client: Client, pipeline: Pipeline) -> Iterator[MissingRight]:
    """Check the rights to register and to run a pipeline.

    The user who registers it becomes its owner; an invisible pipeline is treated as new.
    """
    run = list(_lacking(client, (pipeline.name,), action="job_run", needed_for="run", kind="job_template"))
    try:
        client.pipelines.load(pipeline.name)
    except (NotFoundError, DeniedError):
        yield from _lacking(client, (), action="job_template_create", needed_for="register pipelines in")
        own = [tuple(line for line in one.grants if "use_job_template" not in line) for one in run]
        yield from (MissingRight(table=(), needed_for="run pipelines in", grants=lines) for lines in own if lines)
        return
    yield from run


def unseen_pipeline(client: Client, pipeline: Pipeline) -> str | None:
    """Return why it is not known whether a run may use the pipeline's name; None if it is.

    To a caller without rights on it, a pipeline that another user has registered is absent. A run registers its
    pipeline, and the server refuses a name that is in use.
    """
    try:
        client.pipelines.load(pipeline.name)
    except DeniedError:
        pass
    except NotFoundError:
        if client.access.explain("job_run", (pipeline.name,), kind="job_template").decision.allowed:
            return None  # the caller may run all pipelines, so this one is absent
    else:
        return None
    return (
        f"whether another user has registered a pipeline {pipeline.name}, which you could not see: then a run is"
        " refused, and its owner can let you use it by 'limnos grant use_job_template"
        f" --on {pipeline.name} --kind pipeline --to ROLE'"
    )


def _lacking(
    client: Client, path: Parts, *, action: str, needed_for: str, kind: str | None = None
) -> Iterator[MissingRight]:
    try:
        explanation = client.access.explain(action, path, kind=kind)
    except DeniedError as error:
        yield MissingRight(table=path, needed_for=needed_for, grants=(error.message,))
        return
    except ClientError as error:
        if error.kind == "unavailable":
            raise
        yield MissingRight(table=path, needed_for=needed_for, grants=(f"the server can't decide: {error.message}",))
        return
    if not explanation.decision.allowed:
        yield MissingRight(table=path, needed_for=needed_for, grants=_lines(explanation))


def _lines(explanation: Explanation) -> tuple[str, ...]:
    return tuple(_line(one) for one in explanation.suggestions) or (explanation.decision.sentence,)


def _line(suggestion: str) -> str:
    """Convert the server's suggestion into a command; advice that is not a grant is returned unchanged."""
    match = _GRANT.fullmatch(suggestion)
    if match is None:
        return suggestion
    where = "--on-metalake" if match["name"] is None else f"--on {_shell_quote(match['name'])}"
    kind = "" if match["name"] is None or match["kind"] in _IN_TREE else f" --kind {match['kind']}"
    return f"limnos grant {match['privilege'].lower()} {where}{kind} --to ROLE"


def _shell_quote(name: str) -> str:
    """Quote a path for the shell: unquoted back quotes would run a command."""
    return f"'{name}'" if "`" in name or "'" in name or " " in name else name
