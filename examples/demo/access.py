# SPDX-License-Identifier: Apache-2.0
"""Access rules applied: a second user, other engines, two server processes.

Job: request a table as `ana`, before and after an administrator grants and revokes, and check that each answer is right
at the very next request; and the requests through PyIceberg. May import `model`, `client` and PyIceberg. It must not
know of Spark.
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


class AccessCheckFailed(LimnosError):
    """An access rule was not applied as the administrator had set it."""

    code = "access-wrong"


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """The answer to `ana`: allowed, with the rows read, or refused, with the server's message."""

    allowed: bool
    text: str


@dataclass(frozen=True, slots=True)
class TableAccess:
    """How `ana` requests a table: a refusal is an answer."""

    table: str
    way: str
    ask: Callable[[], AccessAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessTrial:
    """One request of `ana`: the table, the client, the server process, the administrator's preceding change, and the
    answer.
    """

    table: str
    way: str
    server: str
    change: str
    answer: AccessAnswer


def add_ana(admin: Client, tables: Iterable[str]) -> str:
    """Make `ana` a member who may list these tables but read none, also if she is one already. Returns a token of hers
    for an hour.
    """
    _unless_there(lambda: admin.users.add(USER))
    _unless_there(lambda: admin.roles.create(ROLE))
    for table in tables:
        catalog, namespace, *_ = table.split(".")
        admin.roles.allow(ROLE, ["USE_CATALOG"], on=catalog, kind="catalog")
        admin.roles.allow(ROLE, ["USE_SCHEMA"], on=f"{catalog}.{namespace}", kind="namespace")
        _revoke(admin, table)
    admin.roles.grant_to_user(USER, [ROLE])
    return admin.tokens.create(user=USER, name="demo", expires_in_s=3600).token


def run_trials(admin: Client, table_access: TableAccess, *, server: str) -> Iterator[AccessTrial]:
    """Send requests to the server named `server`: refused, granted, revoked; the changes are made at `admin`'s server.

    Raises AccessCheckFailed at the first answer that violates the rules.
    """
    yield _run_trial(table_access, server=server, change=f"{USER} has no {PRIVILEGE}", allowed=False)
    admin.roles.allow(ROLE, [PRIVILEGE], on=table_access.table, kind="table")
    yield _run_trial(table_access, server=server, change=f"{PRIVILEGE} granted", allowed=True)
    _revoke(admin, table_access.table)
    yield _run_trial(table_access, server=server, change=f"{PRIVILEGE} revoked", allowed=False)


def iceberg_access(catalog: Catalog) -> TableAccess:
    """Return ana's requests through PyIceberg."""
    return TableAccess(table=TABLE, way="PyIceberg", ask=lambda: read_last_day(catalog))


def connect(uri: str, *, metalake: str, token: str) -> Catalog:
    """Return a PyIceberg catalog for the token's user."""
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("limnos", uri=f"{uri}/iceberg", warehouse=f"{metalake}/{CATALOG}", token=token)


def read_last_day(catalog: Catalog) -> AccessAnswer:
    """Load the table and count the rows of its last day: the first request decides."""
    from pyiceberg.exceptions import ForbiddenError

    try:
        table = catalog.load_table(_IDENTIFIER)
    except ForbiddenError as error:
        return AccessAnswer(allowed=False, text=str(error))
    day = table.scan(row_filter="flight_date = '2013-12-31'", selected_fields=("carrier", "flight")).to_arrow()
    return AccessAnswer(allowed=True, text=f"{day.num_rows:,} flights of 31 December read")


def _run_trial(table_access: TableAccess, *, server: str, change: str, allowed: bool) -> AccessTrial:
    answer = table_access.ask()
    if answer.allowed != allowed:
        word = "let in" if answer.allowed else "refused"
        raise AccessCheckFailed(f"After '{change}', {USER} was {word} by the {server}: {answer.text}")
    if not allowed and PRIVILEGE not in answer.text.upper():
        raise AccessCheckFailed(f"The refusal by the {server} does not name {PRIVILEGE}: {answer.text}")
    return AccessTrial(table=table_access.table, way=table_access.way, server=server, change=change, answer=answer)


def _revoke(admin: Client, table: str) -> None:
    admin.roles.withdraw(ROLE, [PRIVILEGE], on=table, kind="table")


def _unless_there(make: Callable[[], object]) -> None:
    try:
        make()
    except ConflictError as error:
        if error.code != "already-exists":
            raise
