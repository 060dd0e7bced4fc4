# SPDX-License-Identifier: Apache-2.0
"""Tables of refusals: the answer of every route to callers with different privileges, on objects of each kind.

A protocol's `refusals.py` has the requests of its rows. The answers are in `refusals.md` beside it, for people to read.
`python -m tests.rooms.gravitino.http.refusals` (or `tests.http.admin.refusals`) rewrites that file. Review the
difference before you commit it: a changed cell means that a caller may do more, or less.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tests.http.driver import API, DriverAnswer, DriverNode
from tests.http.iceberg import wire

USE = "use_catalog use_schema"
CALLERS: dict[str, tuple[str, str]] = {
    "nobody": ("", ""),
    "stranger": ("", ""),
    "member": ("", ""),
    "visitor": ("", "use_catalog"),
    "uses": ("", USE),
    "reader": ("", f"{USE} select_table"),
    "writer": ("", f"{USE} modify_table"),
    "creator": ("", f"{USE} create_schema create_table"),
    "drafter": ("", f"{USE} create_view"),
    "viewer": ("", f"{USE} select_view"),
    "keyless": ("", "use_schema select_table modify_table select_view"),
    "cataloger": ("create_catalog", ""),
    "roler": ("create_role", ""),
    "hirer": ("manage_users", ""),
    "grouper": ("manage_groups", ""),
    "granter": ("manage_grants", ""),
    "leader": ("manage_groups manage_grants", ""),
    "tagger": ("create_tag", ""),
    "applier": ("apply_tag", USE),
    "registrar": ("register_job_template", ""),
    "planner": ("use_job_template", ""),
    "runner": ("use_job_template run_job", ""),
    "holder": ("", ""),
    "keeper": ("", "use_catalog"),
    "tabler": ("", f"{USE} create_schema"),
    "owner": ("", ""),
    "laker": ("", ""),
    "admin": ("", ""),
}
"""Each column: the caller's privileges on the metalake and on the catalog. `nobody` sends no credentials, and
`stranger` is not a user of the metalake. `keyless` has privileges on objects in a catalog, but not to use the catalog.
`holder` holds the roles and is a member of the groups. `keeper` owns the namespaces, the roles, the tags and the
pipelines, `tabler` the tables and views, `owner` the catalog, `laker` the metalake. `admin` is a service admin, and
only a member of the metalake, who owns the roles that grant the other callers their privileges.
"""
OWN_OBJECTS = ("mv", "away", "empty", "alter")
"""Separate namespaces of each caller, for rows that change them."""

Row = tuple[str, str]
Pair = tuple[str, str, str]
"""A route, an existing object, and a missing one."""


class RefusalRequest(NamedTuple):
    """The request of a row."""

    method: str
    path: str
    body: object


class RefusalCase(NamedTuple):
    """A row: its route, its subject, and the request."""

    route: str
    thing: str
    request: RefusalRequest


def case(route: str, thing: str, *names: str, root: str = "", body: object = None, query: str = "") -> RefusalCase:
    """Fill names into a route's path: `GET /metalakes/{m}`."""
    method, _, template = route.partition(" ")
    left = iter(names)
    path = re.sub(r"\{\w+\}", lambda _: quote(next(left), safe=""), template)
    assert next(left, None) is None, f"too many names for {route}"
    return RefusalCase(route, thing, RefusalRequest(method, f"{root}{path}{query}", body))


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows."""
    lake, permissions = f"{API}/lake", f"{API}/lake/permissions"
    hire(node, CALLERS)
    for name in ("there", "other"):
        wire.make_space(node, name)
    wire.make_table(node, "there", "t")
    wire.make_view(node, "there", "v")
    for name in ("dummy", "idle"):
        node.done("POST", f"{lake}/users", {"name": name})
        node.done("POST", f"{lake}/groups", {"name": f"{name}s"})
    for name in ("hand", "spare"):
        _make_role(node, name)
    node.done("POST", f"{lake}/groups", {"name": "crew"})
    node.done("POST", f"{lake}/tags", {"name": "red"})
    node.done("POST", f"{lake}/objects/CATALOG/main/tags", {"tagsToAdd": ["red"]})
    for who, (on_metalake, on_catalog) in CALLERS.items():
        _prepare_own(node, who)
        if on_metalake:
            grant(node, who, on_metalake, kind="METALAKE", on="lake")
        if on_catalog:
            grant(node, who, on_catalog, kind="CATALOG", on="main")
    node.done("PUT", f"{permissions}/users/holder/grant", {"roleNames": ["hand", *(f"role_{who}" for who in CALLERS)]})
    for group in ("crew", *(f"group_{who}" for who in CALLERS)):
        node.done("POST", f"/api/limnos/v1/metalakes/lake/groups/{group}/members", {"users": ["holder", "idle"]})
    for space in ("there", *(f"{name}_{who}" for name in OWN_OBJECTS for who in CALLERS)):
        own(node, "keeper", "SCHEMA", f"main.{space}")
    for role in ("hand", *(f"role_{who}" for who in CALLERS)):
        own(node, "keeper", "ROLE", role)
    for tag in ("red", *(f"tag_{who}" for who in CALLERS)):
        own(node, "keeper", "TAG", tag)
    for table in ("t", *(f"{name}_{who}" for name in ("mvt", "awayt") for who in CALLERS)):
        own(node, "tabler", "TABLE", f"main.there.{table}")
    for view in ("v", *(f"{name}_{who}" for name in ("dropv", "namev") for who in CALLERS)):
        own(node, "tabler", "VIEW", f"main.there.{view}")
    own(node, "owner", "CATALOG", "main")
    own(node, "laker", "METALAKE", "lake")


def hire(node: DriverNode, callers: Iterable[str]) -> None:
    """Add the callers as users, except those who must not be users."""
    for who in callers:
        if who not in ("nobody", "stranger", "admin"):
            node.done("POST", f"{API}/lake/users", {"name": who})


def endow(node: DriverNode, callers: Mapping[str, str], *, catalog: str) -> None:
    """Grant each caller its privileges on the metalake; `owner` owns the catalog, `laker` the metalake."""
    for who, privileges in callers.items():
        if privileges:
            grant(node, who, privileges, kind="METALAKE", on="lake")
    own(node, "owner", "CATALOG", catalog)
    own(node, "laker", "METALAKE", "lake")


def _prepare_own(node: DriverNode, who: str) -> None:
    node.done("POST", f"{API}/lake/users", {"name": f"user_{who}"})
    node.done("POST", f"{API}/lake/groups", {"name": f"group_{who}"})
    _make_role(node, f"role_{who}")
    node.done("POST", f"{API}/lake/tags", {"name": f"tag_{who}"})
    for name in OWN_OBJECTS:
        wire.make_space(node, f"{name}_{who}")
    for name in ("mvt", "awayt"):
        wire.make_table(node, "there", f"{name}_{who}")
    for name in ("dropv", "namev"):
        wire.make_view(node, "there", f"{name}_{who}")


def _make_role(node: DriverNode, name: str) -> None:
    node.done("POST", f"{API}/lake/roles", {"name": name, "properties": {}, "securableObjects": []})


def grant(node: DriverNode, who: str, privileges: str, *, kind: str, on: str) -> None:
    """Grant a caller privileges on an object, through a role."""
    role = f"{kind.lower()}_{who}"
    rules = [{"name": name, "condition": "allow"} for name in privileges.split()]
    body = {"name": role, "properties": {}, "securableObjects": [{"fullName": on, "type": kind, "privileges": rules}]}
    node.done("POST", f"{API}/lake/roles", body)
    node.done("PUT", f"{API}/lake/permissions/users/{who}/grant", {"roleNames": [role]})


def own(node: DriverNode, user: str, kind: str, name: str, *, by: str = "admin") -> None:
    """Make a user the owner of an object."""
    node.done("PUT", f"{API}/lake/owners/{kind}/{quote(name, safe='')}", {"name": user, "type": "USER"}, user=by)


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """Return pairs of rows: one about an existing object, and the same request about a missing one."""
    known = set(rows)
    return sorted((route, thing, f"no {thing}") for route, thing in known if (route, f"no {thing}") in known)


def refused_both(
    answer_table: dict[Row, dict[str, DriverAnswer]], pair: Pair, callers: Iterable[str]
) -> Iterator[tuple[str, DriverAnswer, DriverAnswer]]:
    """Yield the callers who are refused both requests of a pair, with both answers, whose messages the caller
    compares.
    """
    route, existing, missing = pair
    for who in callers:
        first, second = answer_table[route, existing][who], answer_table[route, missing][who]
        if first.status == second.status == 403:
            yield who, first, second


def row_cells(answer_table: dict[Row, dict[str, DriverAnswer]], row: Row, callers: Iterable[str]) -> dict[str, str]:
    """Return the cells of a row from its answers."""
    return {who: cell(row[0], answer_table[row][who]) for who in callers}


Cases = Callable[[DriverNode, str], Iterable[RefusalCase]]


def answers(node: DriverNode, cases: Cases, callers: Iterable[str] = CALLERS) -> dict[Row, dict[str, DriverAnswer]]:
    """Return the answers of every row to every caller. Rows that only read come first, for all callers."""
    answer_table: dict[Row, dict[str, DriverAnswer]] = {}
    requests = {who: list(cases(node, who)) for who in callers}
    for looks in (True, False):
        for who, rows in requests.items():
            for route, thing, request in rows:
                if (request.method == "GET") is looks:
                    user = None if who == "nobody" else who
                    row = answer_table.setdefault((route, thing), {})
                    assert who not in row, f"two rows {route} {thing}"
                    row[who] = node.ask(*request, user=user)
    return answer_table


SAME_FOR_ALL = frozenset({"GET /api/limnos/v1/settings"})
"""Routes whose list has the same items for every caller who may read it. Their cells do not have the number of
items.
"""


def cell(route: str, answer: DriverAnswer) -> str:
    """Return a cell: a status. It is followed by the number of items of a list, a minus for a drop without effect, an n
    for a negative explanation, or the code of a failure in an answer with status 200.
    """
    if answer.status != 200 or not answer.headers.get("content-type", "").startswith("application/json"):
        return str(answer.status)
    body = json.loads(answer.body)
    if route.startswith("GET ") and route not in SAME_FOR_ALL:
        sizes = [len(value) for value in body.values() if isinstance(value, list)]
        return f"200:{sizes[0]}" if sizes else "200"
    if route.startswith("DELETE "):
        return "200-" if any(body.get(word) is False for word in ("dropped", "removed", "revoked")) else "200"
    if isinstance(body.get("code", 0), int) and body.get("code", 0) != 0:
        return f"200!{body['code']}"
    return "200" if body.get("decision", {}).get("allowed", True) else "200n"


def render(answer_table: dict[Row, dict[str, DriverAnswer]], callers: Collection[str] = CALLERS) -> str:
    """Render the table of answers."""
    lines = [f"| route | about | {' | '.join(callers)} |", f"|---|---|{'---|' * len(callers)}"]
    for (route, thing), row_answers in answer_table.items():
        lines.append(f"| `{route}` | {thing} | {' | '.join(cell(route, row_answers[who]) for who in callers)} |")
    return "\n".join(lines)


def written(file: Path, callers: Collection[str] = CALLERS) -> Iterator[tuple[Row, dict[str, str]]]:
    """Return the rows of the committed table."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            route, thing, *cells = (part.strip() for part in line.strip("| ").split("|"))
            assert len(cells) == len(callers), route
            yield (route.strip("`"), thing), dict(zip(callers, cells, strict=True))


def keep(file: Path, node: DriverNode, *, cases: Cases, callers: Collection[str]) -> None:
    """Store the table of a node's current answers, below its introduction."""
    table = render(answers(node, cases, callers), callers)
    words = file.read_text(encoding="utf-8").partition("| route |")[0] if file.exists() else ""
    file.write_text(f"{words}{table}\n", encoding="utf-8")


def write(
    file: Path, cases: Cases, callers: Collection[str] = CALLERS, *, make: Callable[[DriverNode], None] = prepare
) -> None:
    """Store the table of the code's current answers, below its introduction."""
    with tempfile.TemporaryDirectory() as folder, wire.node_over(Path(folder)) as node:
        make(node)
        keep(file, node, cases=cases, callers=callers)
