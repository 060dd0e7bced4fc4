# SPDX-License-Identifier: Apache-2.0
"""Scenarios with Lance tables: changes on one node, and the required answers to the next request on the other.

Each scenario has its own namespace in catalog `lance`. Tables are declared, so that answers depend on the store only;
the manifests of versions are a few bytes that no reader opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from tests.nodes.change_stories import ChangeTurn, FollowUpRequest, follow_up
from tests.nodes.wire import GRAVITINO, OWN, Wire, rights_body, rights_path
from tests.nodes.world import NodesWorld
from tests.rooms.lance.http.wire import stage

ROOT = "/lance/v1"
READER = ("use_catalog", "use_schema")


def table(*path: str) -> str:
    """Return the path of a table in the catalog."""
    return f"{ROOT}/table/{quote('$'.join(('lance', *path)), safe='')}"


def space(world: NodesWorld, *path: str) -> None:
    """Create a namespace."""
    name = quote("$".join(("lance", *path)), safe="")
    world.admin().do("POST", f"{ROOT}/namespace/{name}/create", {})


def declare(world: NodesWorld, *path: str, **properties: str) -> Path:
    """Create a table without data. Returns its location."""
    declaration = world.admin().do("POST", f"{table(*path)}/declare", {"properties": properties}).body
    return Path(str(declaration["location"]).removeprefix("file://"))


def reader(world: NodesWorld, name: str, *more: str) -> str:
    """Create a user with the privileges to use the catalog and its schemas, and further ones."""
    world.role(f"{name}_role", to=world.user(name))
    world.grant(f"{name}_role", "catalog", "lance", *READER, *more)
    return name


def described(who: str, status: int, *path: str) -> FollowUpRequest:
    """Return a user's request to describe a table."""
    return FollowUpRequest(
        who=who, status=status, method="POST", path=f"{table(*path)}/describe", body={"load_detailed_metadata": False}
    )


def lance_privileges(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Revoke and grant the privilege to read a table: the answers to describes, counts and queries follow."""
    space(world, "rights")
    declare(world, "rights", "t")
    user = reader(world, "lana")
    world.grant("lana_role", "table", "lance.rights.t", "select_table")
    revoke, grant = (rights_path("lana_role", "table", "lance.rights.t", verb) for verb in ("revoke", "grant"))
    body = rights_body("select_table")
    counts = ("POST", f"{table('rights', 't')}/count_rows", {})
    while True:
        yield ChangeTurn(
            "revoke privilege",
            lambda admin: admin.do("PUT", revoke, body),
            (described(user, 403, "rights", "t"), follow_up(user, 403, request=counts)),
        )
        yield ChangeTurn(
            "grant privilege",
            lambda admin: admin.do("PUT", grant, body),
            (
                described(user, 200, "rights", "t"),
                follow_up(user, 404, request=counts),
            ),  # a declared table has no rows to count
        )


def lance_owners(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Transfer a table between two users: the right to read follows the ownership."""
    space(world, "owners")
    declare(world, "owners", "t")
    lia, lou = (reader(world, name) for name in ("lia", "lou"))
    path = f"{GRAVITINO}/owners/table/lance.owners.t"
    while True:
        for new, old in ((lia, lou), (lou, lia)):
            yield ChangeTurn(
                f"make {new} the owner",
                lambda admin, new=new: admin.do("PUT", path, {"name": new, "type": "USER"}),
                (described(old, 403, "owners", "t"), described(new, 200, "owners", "t")),
            )


def lance_renames(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Rename a table and rename it back: the old name is NotFound and the new one exists."""
    space(world, "renames")
    declare(world, "renames", "a")
    user = reader(world, "lil", "select_table", "modify_table")
    while True:
        for old, new in (("a", "b"), ("b", "a")):
            path = f"{table('renames', old)}/rename"
            yield ChangeTurn(
                f"rename {old} to {new}",
                lambda admin, path=path, new=new: admin.do("POST", path, {"new_table_name": new}),
                (described(user, 404, "renames", old), described(user, 200, "renames", new)),
            )


def lance_moves(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Move a namespace from a readable to an unreadable parent, and back."""
    for path in (("open",), ("shut",), ("open", "box")):
        space(world, *path)
    declare(world, "open", "box", "t")
    user = reader(world, "luz")
    world.grant("luz_role", "schema", "lance.open", "select_table")
    everywhere = reader(world, "lev", "select_table")
    address = f"{OWN}/metalakes/lake/catalogs/lance/move"
    while True:
        for old, new, status in (("open", "shut", 403), ("shut", "open", 200)):
            body = {"kind": "namespace", "source": [old, "box"], "target": [new, "box"]}
            yield ChangeTurn(
                f"move {old}.box to {new}.box",
                lambda admin, body=body: admin.do("POST", address, body),
                (described(user, status, new, "box", "t"), described(everywhere, 404, old, "box", "t")),
            )


def lance_drops(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Create and drop a table, create and deregister it."""
    space(world, "drops")
    user = reader(world, "lyn", "select_table", "modify_table")
    path = table("drops", "t")
    while True:
        for end in ("drop", "deregister"):
            yield ChangeTurn(
                "declare",
                lambda admin: admin.do("POST", f"{path}/declare", {}),
                (
                    described(user, 200, "drops", "t"),
                    FollowUpRequest(who=user, status=200, method="POST", path=f"{path}/exists", body={}),
                ),
            )
            yield ChangeTurn(
                end,
                lambda admin, end=end: admin.do("POST", f"{path}/{end}", {}),
                (
                    described(user, 404, "drops", "t"),
                    FollowUpRequest(who=user, status=404, method="POST", path=f"{path}/exists", body={}),
                ),
            )


def lance_successors(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Drop a table on which a user has a privilege, and declare another one of its name: the user has no privilege on
    it.
    """
    space(world, "heirs")
    declare(world, "heirs", "t")
    user = reader(world, "lux")
    world.grant("lux_role", "table", "lance.heirs.t", "select_table")
    grant = rights_path("lux_role", "table", "lance.heirs.t", "grant")
    path = table("heirs", "t")

    def recreate(admin: Wire) -> None:
        admin.do("POST", f"{path}/drop", {})
        admin.do("POST", f"{path}/declare", {})

    while True:
        yield ChangeTurn("drop and recreate", recreate, (described(user, 403, "heirs", "t"),))
        yield ChangeTurn(
            "grant on the new one",
            lambda admin: admin.do("PUT", grant, rights_body("select_table")),
            (described(user, 200, "heirs", "t"),),
        )


def lance_versions(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Commit managed versions of a table: the other node lists each at once, and none is created twice."""
    space(world, "kept")
    place = declare(world, "kept", "t", managed_versioning="true")
    user, path = reader(world, "lois", "select_table", "modify_table"), table("kept", "t")
    version = 0
    while True:
        version += 1
        body = {"version": version, "manifest_path": stage(place, version, mark=f"v{version}")}
        again = {"version": version, "manifest_path": stage(place, version, text=b"others", mark="late")}
        yield ChangeTurn(
            f"commit version {version}",
            lambda admin, body=body: admin.do("POST", f"{path}/version/create", body),
            (
                FollowUpRequest(
                    who=user, status=200, method="POST", path=f"{path}/version/describe", body={"version": version}
                ),
                FollowUpRequest(
                    who=user, status=404, method="POST", path=f"{path}/version/describe", body={"version": version + 1}
                ),
                FollowUpRequest(who=user, status=409, method="POST", path=f"{path}/version/create", body=again),
            ),
        )


LANCE_STORIES = (
    lance_privileges,
    lance_owners,
    lance_renames,
    lance_moves,
    lance_drops,
    lance_successors,
    lance_versions,
)
