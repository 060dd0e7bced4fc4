"""`create metalake | catalog | namespace`.

May import `names` and this room. Tables are made by engines: Spark, PyIceberg, Trino.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, Comment, Common, Property, properties_of
from limnos.cli.output import show_done
from limnos.names import display

app = App(name="create")


@app.command
def metalake(name: str, /, *, comment: Comment = None, property: Property = None, common: Common = DEFAULTS) -> None:
    """Make a metalake. Only service admins may.

    Parameters
    ----------
    name
        1 to 64 ASCII letters, digits and `_`.
    """
    with common.client() as client:
        made = client.metalakes.create(name, comment=comment, properties=properties_of(property))
    result = {"kind": "metalake", "name": made.name, "properties": made.properties}
    show_done(f"created metalake {made.name}", result, shape=common.shape)


@app.command
def catalog(
    name: str,
    /,
    *,
    warehouse: Annotated[str | None, Parameter(help="Where its tables lie: a directory or object store URL.")] = None,
    storage: Annotated[
        str | None, Parameter(help="The storage of the server's settings that says how its files are reached.")
    ] = None,
    type: Annotated[
        str, Parameter(help="What it holds: `relational`, `fileset`, `messaging` or `model`.")
    ] = "relational",
    provider: Annotated[str, Parameter(help="What serves it.")] = "lakehouse-iceberg",
    comment: Comment = None,
    property: Property = None,
    common: Common = DEFAULTS,
) -> None:
    """Make a catalog.

    Parameters
    ----------
    name
        1 to 64 ASCII letters, digits, `_` and `-`.
    """
    stated = {"warehouse": warehouse, "storage": storage}
    properties = properties_of(property) | {key: value for key, value in stated.items() if value}
    with common.client() as client:
        made = client.catalogs.create(name, type=type, provider=provider, comment=comment, properties=properties)
    result = {"kind": "catalog", "name": made.name, "path": [made.name], "properties": made.properties}
    show_done(f"created catalog {made.name}", result, shape=common.shape)


@app.command
def namespace(
    path: str,
    /,
    *,
    parents: Annotated[bool, Parameter(negative="", help="Make missing parents too, all or nothing.")] = False,
    comment: Comment = None,
    property: Property = None,
    common: Common = DEFAULTS,
) -> None:
    """Make a namespace, at any depth.

    Parameters
    ----------
    path
        Catalog and levels, as `main.raw.nyc`.
    """
    with common.client() as client:
        made = client.namespaces.create(path, properties=properties_of(property), comment=comment, parents=parents)
    name = display.render(made.path)
    result = {"kind": "namespace", "name": name, "path": made.path, "properties": made.properties}
    show_done(f"created namespace {name}", result, shape=common.shape)
