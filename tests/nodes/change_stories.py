# SPDX-License-Identifier: Apache-2.0
"""Changes on one node and the required answers to the next request on another: one endless scenario for each kind of
change.

Each scenario prepares its objects, then yields turns: a mutation, and the requests that directly follow on the other
node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    Wire,
    namespace_body,
    namespace_path,
    properties_body,
    rename_body,
    rights_body,
    rights_path,
    table_body,
    table_path,
)
from tests.nodes.world import NodesWorld


class FollowUpRequest(NamedTuple):
    """A request directly after a mutation, and its required status."""

    who: str
    status: int
    method: str
    path: str
    body: object = None


def follow_up(who: str, status: int, *, request: tuple[str, str] | tuple[str, str, object]) -> FollowUpRequest:
    """Expect the status when a user sends a request: its method, path and, if it has one, body."""
    method, path, *body = request
    return FollowUpRequest(who=who, status=status, method=method, path=path, body=body[0] if body else None)


class ChangeTurn(NamedTuple):
    """A mutation by the admin of one node, and the following requests on the other."""

    does: str
    mutate: Callable[[Wire], object]
    asks: tuple[FollowUpRequest, ...]


def privileges(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Revoke a privilege on a table, and grant it again: loads by its user follow."""
    world.namespace("rights")
    world.table("rights", "t")
    user = world.reader("ana", schema="rights", selects=False)
    world.grant("ana_role", "table", "main.rights.t", "select_table")
    revoke, grant = (rights_path("ana_role", "table", "main.rights.t", verb) for verb in ("revoke", "grant"))
    load = ("GET", table_path("rights", "t"))
    body = rights_body("select_table")
    while True:
        yield ChangeTurn(
            "revoke privilege", lambda admin: admin.do("PUT", revoke, body), (follow_up(user, 403, request=load),)
        )
        yield ChangeTurn(
            "grant privilege", lambda admin: admin.do("PUT", grant, body), (follow_up(user, 200, request=load),)
        )


def roles(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Revoke a role from a user, and grant it again."""
    world.namespace("roles")
    world.table("roles", "t")
    user = world.reader("bea", schema="roles")
    path = f"{GRAVITINO}/permissions/users/bea"
    load, body = ("GET", table_path("roles", "t")), {"roleNames": ["bea_role"]}
    while True:
        yield ChangeTurn(
            "take role", lambda admin: admin.do("PUT", f"{path}/revoke", body), (follow_up(user, 403, request=load),)
        )
        yield ChangeTurn(
            "give role", lambda admin: admin.do("PUT", f"{path}/grant", body), (follow_up(user, 200, request=load),)
        )


def members(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Remove a user from the group that has the privileges, and add the user again."""
    world.namespace("members")
    world.table("members", "t")
    user = world.user("cyd")
    world.role("crew_role")
    world.grant("crew_role", "catalog", "main", "use_catalog")
    world.grant("crew_role", "schema", "main.members", "use_schema", "select_table")
    world.admin().do("POST", f"{GRAVITINO}/groups", {"name": "crew"})
    world.admin().do("PUT", f"{GRAVITINO}/permissions/groups/crew/grant", {"roleNames": ["crew_role"]})
    path, load = f"{OWN}/metalakes/lake/groups/crew/members", ("GET", table_path("members", "t"))
    while True:
        yield ChangeTurn(
            "add member",
            lambda admin: admin.do("POST", path, {"users": ["cyd"]}),
            (follow_up(user, 200, request=load),),
        )
        yield ChangeTurn(
            "remove member", lambda admin: admin.do("DELETE", f"{path}/cyd"), (follow_up(user, 403, request=load),)
        )


def users(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Disable a user, and enable them again."""
    world.namespace("users")
    world.table("users", "t")
    user = world.reader("dot", schema="users")
    path, load = f"{OWN}/metalakes/lake/users/dot", ("GET", table_path("users", "t"))
    while True:
        yield ChangeTurn(
            "disable user",
            lambda admin: admin.do("PATCH", path, {"enabled": False}),
            (follow_up(user, 403, request=load),),
        )
        yield ChangeTurn(
            "enable user",
            lambda admin: admin.do("PATCH", path, {"enabled": True}),
            (follow_up(user, 200, request=load),),
        )


def tokens(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Create a token for a user, and revoke it."""
    world.namespace("tokens")
    world.table("tokens", "t")
    world.reader("eve", schema="tokens")
    load = ("GET", table_path("tokens", "t"))
    while True:
        created_token = world.admin().do("POST", f"{OWN}/tokens", {"user": "eve", "name": "short-lived"}).body
        text, path = str(created_token["token"]), f"{OWN}/tokens/{created_token['id']}"
        yield ChangeTurn("make token", lambda admin: None, (follow_up(text, 200, request=load),))
        yield ChangeTurn(
            "revoke token", lambda admin, path=path: admin.do("DELETE", path), (follow_up(text, 401, request=load),)
        )


def owners(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Transfer a table between two users: the rights to read and commit follow the ownership."""
    world.namespace("owners")
    world.table("owners", "t")
    fay, gus = (world.reader(name, schema="owners", selects=False) for name in ("fay", "gus"))
    path, table = f"{GRAVITINO}/owners/table/main.owners.t", table_path("owners", "t")
    while True:
        for new, old in ((fay, gus), (gus, fay)):
            yield ChangeTurn(
                f"make {new} the owner",
                lambda admin, new=new: admin.do("PUT", path, {"name": new, "type": "USER"}),
                (
                    FollowUpRequest(who=old, status=403, method="POST", path=table, body=properties_body(by=old)),
                    FollowUpRequest(who=new, status=200, method="POST", path=table, body=properties_body(by=new)),
                    FollowUpRequest(who=old, status=403, method="GET", path=table),
                    FollowUpRequest(who=new, status=200, method="GET", path=table),
                ),
            )


def renames(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Rename a table and rename it back: the old name is NotFound and the new one exists."""
    world.namespace("renames")
    world.table("renames", "a")
    user = world.reader("hal", schema="renames")
    while True:
        for old, new in (("a", "b"), ("b", "a")):
            body = rename_body(("renames", old), ("renames", new))
            asks = (
                FollowUpRequest(who=user, status=404, method="GET", path=table_path("renames", old)),
                FollowUpRequest(who=user, status=200, method="GET", path=table_path("renames", new)),
            )
            yield ChangeTurn(
                f"rename {old} to {new}",
                lambda admin, body=body: admin.do("POST", f"{PREFIX}/tables/rename", body),
                asks if old == "a" else asks[::-1],
            )


def moves(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Move a namespace from a readable to an unreadable parent, and back."""
    for levels in (("open",), ("shut",), ("open", "box")):
        world.namespace(*levels)
    world.table("open", "box", "t")
    user = world.reader("ida", schema="open")
    path = f"{OWN}/metalakes/lake/catalogs/main/move"
    while True:
        for old, new, status in (("open", "shut", 403), ("shut", "open", 200)):
            body = {"kind": "namespace", "source": [old, "box"], "target": [new, "box"]}
            yield ChangeTurn(
                f"move {old}.box to {new}.box",
                lambda admin, body=body: admin.do("POST", path, body),
                (
                    FollowUpRequest(who=user, status=status, method="GET", path=table_path(new, "box", "t")),
                    FollowUpRequest(who="admin", status=404, method="GET", path=table_path(old, "box", "t")),
                    FollowUpRequest(who="admin", status=200, method="GET", path=table_path(new, "box", "t")),
                ),
            )


def drops(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Create a table and drop it."""
    world.namespace("drops")
    user = world.reader("jon", schema="drops")
    tables, table = f"{namespace_path('drops')}/tables", table_path("drops", "t")
    while True:
        yield ChangeTurn(
            "create table",
            lambda admin: admin.do("POST", tables, table_body("t")),
            (FollowUpRequest(who=user, status=200, method="GET", path=table),),
        )
        yield ChangeTurn(
            "drop table",
            lambda admin: admin.do("DELETE", table),
            (FollowUpRequest(who=user, status=404, method="GET", path=table),),
        )


def successors(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Drop a table on which a user has a privilege, and create another one of its name: the user has no privilege on
    it.
    """
    world.namespace("heirs")
    world.table("heirs", "t")
    user = world.reader("kim", schema="heirs", selects=False)
    world.grant("kim_role", "table", "main.heirs.t", "select_table")
    grant = rights_path("kim_role", "table", "main.heirs.t", "grant")
    tables, table = f"{namespace_path('heirs')}/tables", table_path("heirs", "t")

    def recreate(admin: Wire) -> None:
        admin.do("DELETE", table)
        admin.do("POST", tables, table_body("t"))

    while True:
        yield ChangeTurn(
            "drop and recreate", recreate, (FollowUpRequest(who=user, status=403, method="GET", path=table),)
        )
        yield ChangeTurn(
            "grant on the new one",
            lambda admin: admin.do("PUT", grant, rights_body("select_table")),
            (FollowUpRequest(who=user, status=200, method="GET", path=table),),
        )


def rebuilds(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Rebuild a table in a catalog with successors: its reader keeps the privilege, and a revoked one stays revoked."""
    admin = world.admin()
    properties = {"successors": "same-owner"}
    body = {"name": "built", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": properties}
    admin.do("POST", f"{GRAVITINO}/catalogs", body)
    spaces = "/iceberg/v1/lake.built/namespaces"
    tables, table = f"{spaces}/s/tables", f"{spaces}/s/tables/t"
    admin.do("POST", spaces, namespace_body("s"))
    admin.do("POST", tables, table_body("t"))
    user = world.reader("lea", selects=False)
    world.grant("lea_role", "catalog", "built", "use_catalog")
    world.grant("lea_role", "schema", "built.s", "use_schema")
    world.grant("lea_role", "table", "built.s.t", "select_table")
    revoke, grant = (rights_path("lea_role", "table", "built.s.t", verb) for verb in ("revoke", "grant"))
    privilege = rights_body("select_table")

    def recreate(admin: Wire) -> None:
        admin.do("DELETE", table)
        admin.do("POST", tables, table_body("t"))

    def revoke_first(admin: Wire) -> None:
        admin.do("PUT", revoke, privilege)
        recreate(admin)

    while True:
        yield ChangeTurn("rebuild", recreate, (FollowUpRequest(who=user, status=200, method="GET", path=table),))
        yield ChangeTurn(
            "revoke and rebuild", revoke_first, (FollowUpRequest(who=user, status=403, method="GET", path=table),)
        )
        yield ChangeTurn(
            "grant again",
            lambda admin: admin.do("PUT", grant, privilege),
            (FollowUpRequest(who=user, status=200, method="GET", path=table),),
        )


STORIES = (privileges, roles, members, users, tokens, owners, renames, moves, drops, successors, rebuilds)


def follow(
    world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]], rounds: int
) -> tuple[int, list[str]]:
    """Execute a number of turns of a scenario, each on one node with the following requests on the other; the nodes
    alternate.

    Returns the number of requests, and the wrong decisions.
    """
    request_count, wrong = 0, []
    for number, turn in zip(range(rounds), story(world), strict=False):
        here = number // 2 % 2
        turn.mutate(world.admin(here))
        for ask in turn.asks:
            answer = world.wire(1 - here, ask.who).ask(ask.method, ask.path, ask.body)
            request_count += 1
            if answer.status != ask.status:
                wrong.append(
                    f"round {number}: after '{turn.does}' on node {here}, {ask.method} {ask.path} by {ask.who} on node "
                    f"{1 - here} was answered {answer.status}, not {ask.status}: {answer.message}"
                )
    return request_count, wrong
