# SPDX-License-Identifier: Apache-2.0
"""`names check | plan | show | migrate | undo | confirm`: names of namespaces that contain the separator."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.output import show_done, show_rows, visible
from limnos.client.values import NameChange, NameChanges
from limnos.names import display

app = App(name="names")
SeparatorFlag = Annotated[
    str | None, Parameter(help="The character to remove from names; the default is the server's.")
]


@app.command
def check(catalog: str = "main", /, *, separator: SeparatorFlag = None, common: CommonFlags = DEFAULTS) -> int:
    """List names of namespaces that contain the separator. Exit code 0 if there are none, else 1.

    Such a name would be read as several levels in a catalog with nested namespaces.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client:
        name_check = client.names.check(catalog, separator=separator)
    asdict = msgspec.structs.asdict(name_check)
    if not name_check.conflicts:
        show_done(
            f"no name in catalog {catalog} contains '{name_check.separator}'",
            asdict,
            output_format=common.output_format,
        )
        return 0
    names = [{"name": name} for name in name_check.names]
    show_rows(names, ["name"], output_format=common.output_format)
    free = f"; no name contains {' or '.join(name_check.free)}" if name_check.free else ""
    more = f" --separator '{separator}'" if separator else ""
    _note(
        f"{name_check.conflicts} names in catalog {catalog} contain '{name_check.separator}'{free}: rename them with"
        f" 'limnos names plan {catalog}{more}'"
    )
    return 1


@app.command
def plan(
    catalog: str = "main",
    /,
    *,
    separator: SeparatorFlag = None,
    replacement: Annotated[str, Parameter(help="Replacement of the separator in names that stay one part.")] = "_",
    flat: Annotated[bool, Parameter(negative="", help="Rename only: namespaces do not nest afterwards.")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Plan new names for namespaces whose names contain the separator, and show them. Changes no name.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client:
        client.names.plan(catalog, separator=separator, replacement=replacement, nested=not flat)
        head, changes = client.names.changes(catalog)
    _show(head, changes, common=common)


@app.command
def show(catalog: str = "main", /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show the plan and its progress.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    with common.client() as client:
        head, changes = client.names.changes(catalog)
    _show(head, changes, common=common)


@app.command
def migrate(catalog: str = "main", /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Change the names as planned. After an interruption run it again, on any machine.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    confirm(f"Change the names of catalog {catalog} as planned?", yes=yes)
    with common.client() as client:
        changes = client.names.migrate(catalog)
    show_done(
        f"changed {changes.renamed + changes.nested} of {changes.total} names in catalog"
        f" {catalog}{_left_note(changes)}; undo it with 'limnos names undo {catalog}', or confirm it with 'limnos names"
        f" confirm {catalog}'",
        msgspec.structs.asdict(changes),
        output_format=common.output_format,
    )


@app.command
def undo(catalog: str = "main", /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Restore former names and parents of namespaces. After an interruption run it again.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    confirm(f"Restore the former names of catalog {catalog}?", yes=yes)
    with common.client() as client:
        changes = client.names.undo(catalog)
    text = f"the former names of catalog {catalog} are restored{_left_note(changes)}"
    if changes.total == 0:
        text = f"the plan of catalog {catalog} has no names, so there was nothing to restore"
    show_done(text, msgspec.structs.asdict(changes), output_format=common.output_format)


@app.command(name="confirm")
def confirm_names(catalog: str = "main", /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Confirm the new names and delete the plan. The names cannot be restored afterwards.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    """
    confirm(f"Confirm the names of catalog {catalog}? The former names cannot be restored then.", yes=yes)
    with common.client() as client:
        client.names.confirm(catalog)
    show_done(
        f"the names of catalog {catalog} are confirmed", {"confirmed": catalog}, output_format=common.output_format
    )


def _show(head: NameChanges, changes: tuple[NameChange, ...], *, common: CommonFlags) -> None:
    rows = [{**msgspec.structs.asdict(each), "becomes": _new_name_of(each)} for each in changes]
    show_rows(
        rows, ["name", "becomes", "step"], output_format=common.output_format, empty="no name contains the separator"
    )
    nests = ", then namespaces nest" if head.nests else ""
    more = f", {len(changes)} of them shown" if len(changes) < head.total else ""
    _note(f"{head.state}: {head.total} names{more}; each loses '{head.separator}'{nests}{_left_note(head)}")


def _note(text: str) -> None:
    """Print a note to standard error, so that standard output has only the result."""
    print(visible(text), file=sys.stderr)


def _new_name_of(change: NameChange) -> str:
    return display.render_part(change.new_name) if change.path is None else display.render(change.path)


def _left_note(changes: NameChanges) -> str:
    return f"; {changes.left} were skipped, because other requests changed them concurrently" if changes.left else ""
