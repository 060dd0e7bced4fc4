"""What a run's caller may do, asked of the server before anything is written, and the grants that are missing.

Job: for each table that a pipeline reads or makes, whether it is there and whether the caller may do with it what a run
does; for each right that lacks, the `limnos grant` line that gives it. May import `client`, `model`, `names` and this room's values;
it must not know of Spark. It asks for explanations and does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.model.kinds import FEDERATED, GENERIC_PROVIDER, ICEBERG_PROVIDER
from limnos.names import display
from limnos.pipeline.aside import tables_of
from limnos.pipeline.declaration import Parts, Pipeline
from limnos.pipeline.problems import Problem, nearest

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import Explanation, Json
    from limnos.pipeline.reads import Reads

_GRANT = re.compile(r"Grant (?P<privilege>\w+)(?: or \w+)* on (?P<kind>[a-z_]+)(?: (?P<name>\S.*))? to a role of .*\.")
_IN_TREE = frozenset({"catalog", "namespace", "schema", "table"})
"""Kinds that a path means by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A right that the caller lacks: for which table, what it is needed for, and what gives it."""

    table: Parts
    needed_for: str
    grants: tuple[str, ...]
    """Lines of `limnos grant`, in which ROLE is any role that the caller holds; or what else would help, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the server says of a table: `metadata` is None for a view, and for a table that is not there."""

    kind: str
    """table, view, absent, hidden (may not be seen) or outside (of another server's catalog)."""
    metadata: Json | None = None


def look_up(client: Client, tables: frozenset[Parts], *, catalogs: frozenset[str]) -> dict[Parts, Found]:
    """What each table is. Those of catalogs that the server hasn't are outside."""
    return {table: _found(client, table) if table[0] in catalogs else Found(kind="outside") for table in sorted(tables)}


def absent(reads: Mapping[str, Reads], found: Mapping[Parts, Found], *, pipeline: Pipeline) -> Iterator[Problem]:
    """Tables that are read, that no step makes, and that aren't there as far as the caller may know."""
    made = {step.table for step in pipeline.steps}
    known = sorted(display.render(table) for table in {*made, *(table for table, one in found.items() if one.metadata)})
    for step in pipeline.steps:
        for table in sorted(reads[step.name].tables - made):
            if found[table].kind == "absent":
                name = display.render(table)
                message = f"{step.name} reads {name}, which is not there, or you may not see it{nearest(name, known)}"
                yield Problem(message, step.at)


def missing(
    client: Client, pipeline: Pipeline, *, reads: Mapping[str, Reads], found: Mapping[Parts, Found]
) -> tuple[Missing, ...]:
    """The rights that a run of the pipeline would lack, those of its tables first."""
    made = {step.table for step in pipeline.steps}
    lacking: list[Missing] = []
    for table in sorted({table for one in reads.values() for table in (*one.tables, *one.past)} - made):
        kind = found[table].kind
        if kind not in {"outside", "absent"}:
            lacking += _lacking(
                client, table, action="view_load" if kind == "view" else "table_load", needed_for="read"
            )
    for table in written(pipeline, reads):
        lacking += _to_make(client, table, kind=found[table].kind)
    return (*dict.fromkeys(lacking), *_to_run(client, pipeline))


def written(pipeline: Pipeline, reads: Mapping[str, Reads]) -> tuple[Parts, ...]:
    """The tables that a run may write, step after step."""
    return tuple(
        table for step in pipeline.steps for table in tables_of(pipeline, step, sources=reads[step.name].sources)
    )


def lacking_now(client: Client, *, read: Iterable[Parts], written: Iterable[Parts]) -> tuple[str, ...]:
    """What gives the rights that the caller lacks at this moment for tables of a run that is under way."""
    outputs = sorted({*written})
    found = {table: _found(client, table).kind for table in {*read, *outputs}}
    lacking = [
        one
        for table in sorted({*read})
        if found[table] != "absent"
        for one in _lacking(
            client, table, action="view_load" if found[table] == "view" else "table_load", needed_for="read"
        )
    ]
    lacking += [one for table in outputs for one in _to_make(client, table, kind=found[table])]
    return tuple(dict.fromkeys(line for one in lacking for line in one.grants))


def _found(client: Client, table: Parts) -> Found:
    try:
        return Found(kind="table", metadata=client.tables.load(table).metadata)
    except DeniedError:
        return Found(kind="hidden")
    except NotFoundError:
        pass
    try:
        client.views.load(table)
    except DeniedError:
        return Found(kind="hidden")
    except NotFoundError:
        return Found(kind="absent")
    return Found(kind="view")


def _to_make(client: Client, table: Parts, *, kind: str) -> Iterator[Missing]:
    if kind == "hidden":  # there or not: what lets it be seen is granted on what it lies in
        for one in _lacking(client, table, action="table_load", needed_for="see whether there is"):
            own, above = _quoted(display.render(table)), _quoted(display.render(table[:-1]))
            lines = (line.replace(f" --on {own} ", f" --on {above} ") for line in one.grants)
            yield Missing(table=table, needed_for=one.needed_for, grants=tuple(lines))
        return
    if kind == "table":
        yield from _lacking(client, table, action="table_load", needed_for="read")
        yield from _lacking(client, table, action="table_commit", needed_for="write")
        return
    parent = _nearest_parent(client, table)
    if len(parent) < len(table) - 1:  # who makes a namespace owns it, and may make tables there
        yield from _lacking(client, parent, action="namespace_create", needed_for="make namespaces in")
    else:
        yield from _lacking(client, parent, action="table_create", needed_for="make tables in")


def _nearest_parent(client: Client, table: Parts) -> Parts:
    """The innermost namespace of a table's path that is there, or the catalog."""
    for length in range(len(table) - 1, 1, -1):
        try:
            client.namespaces.load(table[:length])
        except NotFoundError:
            continue
        except DeniedError:
            pass
        return table[:length]
    return table[:1]


def catalog_unseen(client: Client, catalog: str) -> Problem | Missing:
    """What to say of a pipeline's catalog that isn't among those the caller may see."""
    said = client.access.explain("catalog_load", (catalog,))
    if not said.decision.allowed:
        return Missing(table=(catalog,), needed_for="see, if it is there,", grants=_lines(said))
    return Problem(f"there is no catalog '{catalog}' in this metalake: make it, or name another one")


def unwritable(client: Client, pipeline: Pipeline) -> Iterator[Problem]:
    """A catalog whose tables no step can write: runs write branches of Iceberg tables."""
    try:
        provider = client.catalogs.get(pipeline.catalog).provider
    except (DeniedError, NotFoundError):
        return  # what is missing then is told with the rights
    if provider not in FEDERATED and provider != ICEBERG_PROVIDER:
        lance = (
            " Lance tables are written by Spark's data source of limnos.lance, in a job."
            if provider == GENERIC_PROVIDER
            else ""
        )
        yield Problem(
            f"catalog '{pipeline.catalog}' has provider {provider}, and pipelines write Iceberg tables alone: name a catalog of "
            f"provider {ICEBERG_PROVIDER}.{lance}",
            pipeline.at,
        )


def _to_run(client: Client, pipeline: Pipeline) -> Iterator[Missing]:
    """Registering and running. Who registers a pipeline owns it; one that can't be seen is taken for a new one."""
    run = list(_lacking(client, (pipeline.name,), action="job_run", needed_for="run", kind="job_template"))
    try:
        client.pipelines.load(pipeline.name)
    except (NotFoundError, DeniedError):
        yield from _lacking(client, (), action="job_template_create", needed_for="register pipelines in")
        own = [tuple(line for line in one.grants if "use_job_template" not in line) for one in run]
        yield from (Missing(table=(), needed_for="run pipelines in", grants=lines) for lines in own if lines)
        return
    yield from run


def _lacking(
    client: Client, path: Parts, *, action: str, needed_for: str, kind: str | None = None
) -> Iterator[Missing]:
    try:
        said = client.access.explain(action, path, kind=kind)
    except DeniedError as error:
        yield Missing(table=path, needed_for=needed_for, grants=(error.message,))
        return
    except ClientError as error:
        if error.kind == "unavailable":
            raise
        yield Missing(table=path, needed_for=needed_for, grants=(f"the server can't tell: {error.message}",))
        return
    if not said.decision.allowed:
        yield Missing(table=path, needed_for=needed_for, grants=_lines(said))


def _lines(said: Explanation) -> tuple[str, ...]:
    return tuple(_line(one) for one in said.suggestions) or (said.decision.sentence,)


def _line(suggestion: str) -> str:
    """The command that does what the server suggests; what is no grant stays in its words."""
    told = _GRANT.fullmatch(suggestion)
    if told is None:
        return suggestion
    where = "--on-metalake" if told["name"] is None else f"--on {_quoted(told['name'])}"
    kind = "" if told["name"] is None or told["kind"] in _IN_TREE else f" --kind {told['kind']}"
    return f"limnos grant {told['privilege'].lower()} {where}{kind} --to ROLE"


def _quoted(name: str) -> str:
    """A path as a shell takes it: back-quotes would run a command there."""
    return f"'{name}'" if "`" in name or "'" in name or " " in name else name
