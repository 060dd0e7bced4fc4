"""Access rules at work: a second user, other engines, two server processes.

Job: let `ana` ask for a table, before and after an administrator grants and revokes, and insist
that each answer is right at the very next request; and how she asks through PyIceberg. May import `model`, `client` and PyIceberg. It must not know of
Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limnos.client import ConflictError
from limnos.model.errors import LimnosError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyiceberg.catalog import Catalog

    from limnos.client import Client

USER = "ana"
ROLE = "delays_reader"
CATALOG = "main"
TABLE = "main.curated.nyc.delays"
PRIVILEGE = "SELECT_TABLE"
_IDENTIFIER = ("curated", "nyc", "delays")


class AccessWrong(LimnosError):
    """An access rule was not applied as the administrator had set it."""

    code = "access-wrong"


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ana` got: let in, with the rows read, or refused, with the server's words."""

    allowed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Door:
    """How `ana` asks for a table: a refusal is an answer."""

    table: str
    way: str
    ask: Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Scene:
    """One request of `ana`: for which table, which way, at which server process, after what change of the administrator, and the answer."""

    table: str
    way: str
    server: str
    change: str
    answer: Answer


def prepare(admin: Client, tables: Iterable[str]) -> None:
    """Make `ana` a member who may look around beside these tables but read none; leave it so if she is already."""
    _unless_there(lambda: admin.users.add(USER))
    _unless_there(lambda: admin.roles.create(ROLE))
    for table in tables:
        catalog, namespace, *_ = table.split(".")
        admin.roles.allow(ROLE, ["USE_CATALOG"], on=catalog, kind="catalog")
        admin.roles.allow(ROLE, ["USE_SCHEMA"], on=f"{catalog}.{namespace}", kind="namespace")
        _revoke(admin, table)
    admin.roles.grant_to_user(USER, [ROLE])


def play(admin: Client, door: Door, *, server: str) -> Iterator[Scene]:
    """Ask the server named `server`: refused, granted, revoked; the changes are made where `admin` is.

    Raises AccessWrong at the first answer that is not what the rules say.
    """
    yield _scene(door, server=server, change=f"{USER} has no {PRIVILEGE}", allowed=False)
    admin.roles.allow(ROLE, [PRIVILEGE], on=door.table, kind="table")
    yield _scene(door, server=server, change=f"{PRIVILEGE} granted", allowed=True)
    _revoke(admin, door.table)
    yield _scene(door, server=server, change=f"{PRIVILEGE} revoked", allowed=False)


def iceberg_door(catalog: Catalog) -> Door:
    """How ana asks through PyIceberg."""
    return Door(table=TABLE, way="PyIceberg", ask=lambda: ask(catalog))


def connect(uri: str, *, metalake: str, token: str | None = None) -> Catalog:
    """A PyIceberg catalog for the token's user, else for `ana`, whom the server believes her name (`simple` authentication on loopback)."""
    from pyiceberg.catalog.rest import RestCatalog

    properties: dict[str, object] = {
        "uri": f"{uri}/iceberg",
        "warehouse": f"{metalake}/{CATALOG}",
    }
    if token is None:
        properties["auth"] = {"type": "basic", "basic": {"username": USER, "password": ""}}
    else:
        properties["token"] = token
    # PyIceberg types every property as text, but reads `auth` as a nested mapping.
    return RestCatalog("limnos", **properties)  # type: ignore[arg-type]


def ask(catalog: Catalog) -> Answer:
    """Load the table and count the rows of its last day: the first request decides."""
    from pyiceberg.exceptions import ForbiddenError

    try:
        table = catalog.load_table(_IDENTIFIER)
    except ForbiddenError as error:
        return Answer(allowed=False, text=str(error))
    day = table.scan(row_filter="flight_date = '2013-12-31'", selected_fields=("carrier", "flight")).to_arrow()
    return Answer(allowed=True, text=f"{day.num_rows:,} flights of 31 December read")


def _scene(door: Door, *, server: str, change: str, allowed: bool) -> Scene:
    answer = door.ask()
    if answer.allowed != allowed:
        word = "let in" if answer.allowed else "refused"
        raise AccessWrong(f"After '{change}', {USER} was {word} by the {server}: {answer.text}")
    if not allowed and PRIVILEGE not in answer.text.upper():
        raise AccessWrong(f"The refusal by the {server} does not name {PRIVILEGE}: {answer.text}")
    return Scene(table=door.table, way=door.way, server=server, change=change, answer=answer)


def _revoke(admin: Client, table: str) -> None:
    admin.roles.withdraw(ROLE, [PRIVILEGE], on=table, kind="table")


def _unless_there(make: Callable[[], object]) -> None:
    try:
        make()
    except ConflictError as error:
        if error.code != "already-exists":
            raise
