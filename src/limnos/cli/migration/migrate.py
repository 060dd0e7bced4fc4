# SPDX-License-Identifier: Apache-2.0
"""`migrate`: moves the tables of another Iceberg catalog into this server, or of this server into another catalog."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, open_client
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.migration.governance import LEFT_OUT, GravitinoAccess
from limnos.cli.migration.moves import RENAMED, SAME_ACCESS, Item, Line, Move, encode_item, new_job
from limnos.cli.migration.openings import open_catalog, open_source
from limnos.cli.migration.states import NOT_ICEBERG, Name, ObjectError, state_of
from limnos.cli.output import visible
from limnos.client.activity.bulk import cut_into_parts, send_part
from limnos.client.errors import ClientError
from limnos.model.table_states import TableState
from limnos.names import display

if TYPE_CHECKING:
    from limnos.cli.migration.rest_catalog import RestCatalog
    from limnos.client import Client

SourceKind = Literal["iceberg-rest", "gravitino", "directory", "jdbc-catalog", "hive", "glue"]
TargetKind = Literal["iceberg-rest"]
CutOver = Literal["rename", "mark"]
app = App(name="migrate", help="Move tables in from another catalog, or out to one.")
_ACCESS: Final = ("create-principal", "add-members", "assign-roles", "create-tag", "tag", "grant", "set-owner")
_QUIET: Final = frozenset(
    {"same", "new", "changed", "new-namespace", "changed-namespace", "new-view", "cut-over", SAME_ACCESS, *_ACCESS}
)
"""Words of objects about which nothing needs to be done."""
_FINE: Final = _QUIET | {"view", "marked", "case-twin", "ahead", LEFT_OUT, RENAMED, NOT_ICEBERG}
"""Words that do not make the command fail."""
SourceToken = Annotated[
    str | None,
    Parameter(env_var="LIMNOS_SOURCE_TOKEN", help="Token or password for the source; safer in LIMNOS_SOURCE_TOKEN."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepFlags:
    """Flags of both directions: which part of a migration runs, and for which namespaces."""

    only: Annotated[str | None, Parameter(help="Move this namespace and those in it alone.")] = None
    plan: Annotated[
        bool,
        Parameter(
            negative="", help="Change nothing: say what would move, what conflicts, which locations must be allowed."
        ),
    ] = False
    check: Annotated[bool, Parameter(negative="", help="Change nothing: compare both sides, table by table.")] = False
    cut_over: Annotated[
        CutOver | None,
        Parameter(help="Leave one place for commits: rename each table where it came from, or only mark it there."),
    ] = None

    def require_one(self) -> None:
        """Raise UsageError if several steps are asked for."""
        if self.plan + self.check + (self.cut_over is not None) > 1:
            raise UsageError("--plan, --check and --cut-over are different steps", hint="give one of them")

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the only namespace; empty for all."""
        return () if self.only is None else tuple(display.parse(self.only))

    @property
    def is_move(self) -> bool:
        """Whether objects are moved, or would be by a plan."""
        return not self.check and self.cut_over is None


WHOLE: Final = StepFlags()


class LimnosTarget:
    """A catalog of a Limnos server: changes are items of bulk jobs."""

    def __init__(self, client: Client, name: str, *, catalog: RestCatalog) -> None:
        self.client = client
        self.name = name
        self.catalog = catalog
        self.job = new_job()
        self.sent = 0

    def states(self, paths: Sequence[Name]) -> dict[Name, TableState]:
        """Load the tables with few requests; none if the server has no such request."""
        states: dict[Name, TableState] = {}
        try:
            tables = self.client.tables.load_each([(self.name, *path) for path in paths])
        except ClientError as error:
            if error.status == 0:
                raise
            return states
        for path, table in zip(paths, tables, strict=True):
            if table is not None:
                with suppress(ObjectError):
                    answer = {"metadata": table.metadata, "metadata-location": table.metadata_location}
                    states[path] = state_of(answer)
        return states

    def send(self, items: Sequence[Item]) -> Iterator[tuple[Item, str, str]]:
        """Make changes as items of a bulk job."""
        lines = [encode_item(self.name, each) for each in items]
        first = self.sent
        for part in cut_into_parts(lines):
            for each in send_part(self.client, self.job, part=part._replace(after=first + part.after)):
                yield items[each.index - first], each.outcome, each.message
        self.sent += len(lines)


class RestTarget:
    """A catalog of any vendor: each change is a request."""

    def __init__(self, catalog: RestCatalog) -> None:
        self.catalog = catalog

    def states(self, paths: Sequence[Name]) -> dict[Name, TableState]:
        """Return nothing: Iceberg REST loads one table at a time."""
        del paths
        return {}

    def send(self, items: Sequence[Item]) -> Iterator[tuple[Item, str, str]]:
        """Make changes by Iceberg REST."""
        for item in items:
            try:
                self._send(item)
            except ObjectError as error:
                yield item, "refused", str(error)
            else:
                yield item, "made", ""

    def _send(self, item: Item) -> None:
        fields = item.fields
        if fields["do"] == "create-namespace":
            properties = fields["properties"]
            self.catalog.create_namespace(item.path, properties if isinstance(properties, dict) else {})
        elif fields["do"] == "register-table":
            if "expected" in fields:
                target_table = self.catalog.table(item.path)
                if target_table.metadata_location != fields["expected"]:
                    raise ObjectError("another client committed to it there meanwhile")
            self.catalog.register(item.path, str(fields["metadata_location"]), overwrite="expected" in fields)
        else:
            raise ObjectError("the properties of a namespace that exists are not changed there")


@app.command(name="from")
def from_(
    kind: SourceKind,
    uri: str,
    /,
    *,
    to: str,
    warehouse: str | None = None,
    iceberg: str | None = None,
    source_token: SourceToken = None,
    step: StepFlags = WHOLE,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Bring the namespaces, tables and views of another catalog that are new or have changed. No file is copied.

    Parameters
    ----------
    kind
        The kind of the other catalog.
    uri
        Its address, as http://polaris:8181/api/catalog, postgresql://USER@HOST/DATABASE, thrift://HOST:9083 or, of
        Glue, a region.
    to
        The catalog of this server to which the tables come.
    warehouse
        The name of the catalog in the other server, if that serves several; of Gravitino, METALAKE/CATALOG; of Glue, an
        account.
    iceberg
        The address of the Iceberg REST service of a Gravitino server, if it is not below its own.
    source_token
        A token for the other server; of a database, the password.
    """
    step.require_one()
    if kind == "gravitino" and (warehouse is None or warehouse.count("/") != 1):
        raise UsageError("name the metalake and the catalog of the Gravitino server", hint="--warehouse lake/main")
    address = iceberg or (f"{uri.rstrip('/')}/iceberg" if kind == "gravitino" else uri)
    with (
        common.client() as client,
        closing(
            open_source(kind, address, token=source_token, warehouse=warehouse, timeout_s=common.timeout)
        ) as source,
        closing(_own_catalog(common, to)) as own,
    ):
        move = Move(source, LimnosTarget(client, to, catalog=own), says=_printer(common), only=step.levels)
        _run(move, step, to=f"{common.server_url}/iceberg {to}")
        if kind == "gravitino" and warehouse is not None and step.is_move:
            _bring_access(
                move,
                uri,
                warehouse=warehouse,
                token=source_token,
                to=(common.metalake, to),
                plan=step.plan,
                timeout_s=common.timeout,
            )
        if step.plan:
            _print_locations(move, client.catalogs.get(to).properties, catalog=to, metalake=common.metalake)
    _finish(move, step, common=common)


@app.command(name="to")
def to_(
    kind: TargetKind,
    uri: str,
    /,
    *,
    source: Annotated[str, Parameter(name="--from")],
    warehouse: str | None = None,
    target_token: Annotated[
        str | None, Parameter(env_var="LIMNOS_TARGET_TOKEN", help="Token for the other catalog.")
    ] = None,
    step: StepFlags = WHOLE,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Register the tables of a catalog of this server in another catalog, with namespaces and views.

    Parameters
    ----------
    kind
        The kind of the other catalog.
    uri
        Its address.
    source
        The catalog of this server whose tables go.
    warehouse
        The name of the catalog in the other server, if that serves several.
    target_token
        A token for the other server.
    """
    del kind  # there is one so far
    step.require_one()
    with (
        closing(
            open_catalog(
                uri,
                token=target_token,
                warehouse=warehouse,
                timeout_s=common.timeout,
                credential_flag="--target-token",
            )
        ) as target,
        closing(_own_catalog(common, source)) as own,
    ):
        move = Move(own, RestTarget(target), says=_printer(common), only=step.levels)
        _run(move, step, to=uri)
    _finish(move, step, common=common)


def _bring_access(
    move: Move, uri: str, *, warehouse: str, token: str | None, to: tuple[str, str], plan: bool, timeout_s: float
) -> None:
    """Bring users, groups, roles, tags, grants and owners. Owners come last: who owns an object may no longer be us."""
    metalake, _, catalog = warehouse.partition("/")
    with open_client(uri, token=token, metalake=metalake, timeout_s=timeout_s) as other:
        access = GravitinoAccess(other, metalake=metalake, catalog=catalog, target_metalake=to[0], target=to[1])
        for items in (access.principals(), access.tags(), access.rights()):
            move.run_items(items, plans=plan)
        move.run_items((item for path, kind in move.objects() for item in access.owner(path, kind)), plans=plan)


def _own_catalog(common: CommonFlags, name: str) -> RestCatalog:
    """Open a catalog of this server by Iceberg REST, with the credential of the command."""
    token, user = common.credential(os.environ)
    return open_catalog(
        f"{common.server_url}/iceberg",
        token=token,
        user=user,
        warehouse=f"{common.metalake}/{name}",
        timeout_s=common.timeout,
        ca_file=common.ca_path,
        credential_flag="--token-file, the credential of this server",
    )


def _run(move: Move, step: StepFlags, *, to: str) -> None:
    if step.check:
        move.check()
    elif step.cut_over is not None:
        move.cut_over(to=to, renames=step.cut_over == "rename")
    else:
        move.run(plans=step.plan)


def _printer(common: CommonFlags) -> Callable[[Line], None]:
    """Return the function that prints what is said of an object: as text on a terminal, else as a line of JSON."""

    def print_line(line: Line) -> None:
        if line.word in _QUIET and not line.text:
            return
        if common.output_format == "table":
            print(visible(f"{line.word}  {display.render(line.path)}{'  ' if line.text else ''}{line.text}"))
        else:
            print(msgspec.json.encode({"path": list(line.path), "state": line.word, "text": line.text}).decode())

    return print_line


def _print_locations(move: Move, properties: dict[str, str], *, catalog: str, metalake: str) -> None:
    """Print the command that allows the locations of the source's tables, if some are not allowed yet."""
    former = [each.strip() for each in properties.get("allowed-locations", "").split(",") if each.strip()]
    needed = move.locations.needed([each for each in (properties.get("warehouse", ""), *former) if each])
    if needed:
        flags = " ".join(f"--allowed-location {quote(each)}" for each in (*former, *needed))
        flags += "" if metalake == DEFAULTS.metalake else f" --metalake {quote(metalake)}"
        note = (
            f"the tables lie below locations that catalog {catalog} may not use yet. Run:\n"
            f"  limnos set {quote(catalog)} {flags}\n"
            "If the server refuses that, its operator starts it with --allow-root and the same locations."
        )
        print(visible(note), file=sys.stderr)


def _finish(move: Move, step: StepFlags, *, common: CommonFlags) -> None:
    counts = dict(sorted(move.counts.items()))
    if common.output_format == "table":
        print(", ".join(f"{count:,} {word}" for word, count in counts.items()) or "no objects")
    else:
        print(msgspec.json.encode({"counts": counts}).decode())
    if step.plan:
        print("note: a plan; nothing was changed. The same command without --plan moves the objects", file=sys.stderr)
    bad = sum(count for word, count in move.counts.items() if word not in _FINE)
    if bad:
        what = "1 object needs" if bad == 1 else f"{bad:,} objects need"
        again = "; the same command without --check brings what changed" if step.check else ""
        raise StoppedError(f"{what} a look: see the lines above", hint=f"the guide 'Moving in' explains each{again}")
