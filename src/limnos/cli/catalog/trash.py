# SPDX-License-Identifier: Apache-2.0
"""`trash list | delete` and `undrop`: dropped objects, and their restoration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done, show_rows
from limnos.client.errors import ClientError
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import Parts

app = App(name="trash")


@app.command(name="list")
def list_trash(path: str = "main", /, *, common: CommonFlags = DEFAULTS) -> None:
    """List the objects that you may restore, newest drop first, with the end of their retention and their ids.

    Parameters
    ----------
    path
        A catalog, or an object in it: objects dropped there, and the object itself.
    """
    with common.client() as client:
        result = client.trash.list(path)
    rows = [
        {
            **msgspec.structs.asdict(each),
            "name": display.render(each.path),
            "restrictions": ", ".join(each.restrictions),
        }
        for each in result
    ]
    columns = ["id", "kind", "name", "dropped_by", "dropped_at", "expires_at", "restrictions"]
    show_rows(rows, columns, output_format=common.output_format, empty=f"nothing in {path} that you may restore")


@app.command
def delete(catalog: str, id: int, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Remove an object from the trash now: it cannot be restored, its files are not deleted, and its location can be
    used again.

    Parameters
    ----------
    catalog
        The catalog, as `main`.
    id
        Its id, as `limnos list trash` shows it.
    """
    confirm(f"Remove {id} from the trash of catalog {catalog}?", yes=yes)
    with common.client() as client:
        client.trash.forget(catalog, id)
    show_done(f"removed {id} from the trash", {"forgotten": id}, output_format=common.output_format)


def undrop(
    path: str,
    /,
    *,
    id: int | None = None,
    to: str | None = None,
    contents: Annotated[bool, Parameter(negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Restore a dropped namespace, or an object such as a table or view, with its owner and the grants on it.

    Parameters
    ----------
    path
        Its former path, as `main.raw.trips`; of several objects the one dropped last. With `--id` its catalog is
        enough.
    id
        The object's id, as `limnos list trash` shows it, if several had the same path.
    to
        The path at which to restore it, as main.raw.trips; unset: its former path.
    contents
        Also restore the objects that were dropped with a namespace.
    """
    if id is None and path.isdigit():
        raise UsageError(
            f"{path} is the id of an object, which follows --id",
            hint=f"'limnos undrop CATALOG --id {path}', with the catalog of the trash",
        )
    with common.client() as client:
        if id is None:
            result = client.trash.undrop(path, to=to, contents=contents)
        else:
            result = client.trash.undrop_id(display.parse(path)[0], id, to=to, contents=contents)
        remaining = 0 if contents or result.kind != "namespace" else _count_below(client, result.path)
    name = display.render(result.path)
    more = f" and {result.contents} below it" if result.contents else ""
    left = f"; {result.left} stay in the trash, because other objects have their names" if result.left else ""
    if remaining:
        left = (
            f"; still in the trash: {remaining} of its objects, which 'limnos list trash {name}' lists and"
            " 'limnos undrop PATH' restores"
        )
    show_done(
        f"restored {result.kind} {name}{more}{left}", msgspec.structs.asdict(result), output_format=common.output_format
    )


def _count_below(client: Client, path: Parts) -> int:
    """Return the number of objects below a path that are in the trash; 0 if the caller may not list them."""
    try:
        return sum(len(each.path) > len(path) for each in client.trash.list(display.render(path)))
    except ClientError:
        return 0
