# SPDX-License-Identifier: Apache-2.0
"""The measured operations as data: how their requests are built and sent, and their targets.

May import `seed` for the names of seeded objects. Knows nothing of servers and clocks.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from bench import seed
from limnos.model.uuids import new_uuid

PREFIX: Final = "/iceberg/v1/lake.main"
SCHEMAS: Final = "/api/metalakes/lake/catalogs/main/schemas"
CHANGES: Final = "/api/limnos/v1/metalakes/lake/catalogs/main/changes"
RATIO_AIM: Final = 1.25
"""Maximum ratio of CPU on the largest tree to that on the smallest."""
POSTGRES_AIM: Final = 2.0
"""Targets of reads on PostgreSQL, as a multiple of SQLite's."""
AIM_CONNECTIONS: Final = 16
ALONE_WHEN_AIMED_US: Final = 16.0
"""Cost of the server library alone, with 6 KB answers and 16 connections, on the machine and day of the targets."""
_serial = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The parameters for the requests of one measurement. `part` of `parts` are shares of names used only once."""

    host: str
    shape: seed.Shape
    connections: int
    part: int
    parts: int


@dataclass(frozen=True, slots=True)
class Beside:
    """Requests of a second client during the measurement, on one connection, and their rate."""

    requests: Callable[[Case], list[bytes]]
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation. `aim_us` is CPU µs per request with 16 connections on SQLite; None: only printed.

    `once`: its requests must not be repeated. `big_tree_only`: it needs more names than the small tree has. `nodes_min`
    is the minimum size of the tree. `names` is the number of names in the body, checked before the measurement. `files`
    are the files that each request creates: directories, and bytes of one file. `beside` are requests of a second
    client, whose own cost is subtracted.
    """

    key: str
    title: str
    requests: Callable[[Case], list[bytes]]
    aim_us: float | None = None
    writes: bool = False
    once: bool = False
    count_max: int = 1_000_000
    big_tree_only: bool = False
    nodes_min: int = 0
    names: int | None = None
    files: tuple[int, int] | None = None
    beside: Beside | None = None


# ------------------------------------------------------------------------------------------------- requests


def request(case: Case, method: str, path: str, *, user: str, body: object = None, more: tuple[str, ...] = ()) -> bytes:
    """Build a request as an Iceberg client does, with Basic credentials. `more` are additional headers."""
    proof = f"Basic {base64.b64encode(f'{user}:x'.encode()).decode()}"
    return spelled(case.host, method, path, proof=proof, body=body, more=more)


def spelled(host: str, method: str, path: str, *, proof: str, body: object = None, more: tuple[str, ...] = ()) -> bytes:
    """Build a request with any credentials."""
    data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    head = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: {proof}",
        "User-Agent: limnos-bench",
        "Accept: application/json",
        *more,
    ]
    if data:
        head += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join((*head, "", "")).encode() + data


def namespace_path(levels: Sequence[str]) -> str:
    """Return the path of a namespace."""
    return f"{PREFIX}/namespaces/{'%1F'.join(quote(level, safe='') for level in levels)}"


def table_path(levels: Sequence[str], name: str) -> str:
    """Return the path of a table."""
    return f"{namespace_path(levels)}/tables/{quote(name, safe='')}"


def columns(count: int) -> list[dict[str, object]]:
    """Return the columns of a table. Each takes about 100 bytes of metadata."""
    kinds = ("long", "string", "double", "timestamptz", "decimal(18,2)")
    return [
        {
            "id": i + 1,
            "name": f"column_{i:04}",
            "required": False,
            "type": kinds[i % len(kinds)],
            "doc": "what it holds",
        }
        for i in range(count)
    ]


def new_table(name: str, *, width: int, properties: int = 10) -> dict[str, object]:
    """Return the body that creates a table."""
    return {
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": columns(width)},
        "properties": {f"owner.property.{i}": f"value {i} of this table" for i in range(properties)}
        | {"write.metadata.previous-versions-max": "5"},
    }


TEMPLATES: Final = (
    new_table("small", width=1, properties=0),
    new_table("medium", width=50),
    new_table("large", width=1900),
)
"""Tables with about 0.8, 6 and 200 KB of metadata, which `seed` copies."""


def _shuffled(requests: list[bytes]) -> list[bytes]:
    random.Random(7).shuffle(requests)
    return requests


def _hot(method: str) -> Callable[[Case], list[bytes]]:
    """Any of 1,000 tables in 20 namespaces."""

    def make(case: Case) -> list[bytes]:
        return _shuffled(
            [
                request(case, method, table_path([f"hot{space}"], f"t{table}"), user="reader")
                for space in range(seed.HOT_NAMESPACES)
                for table in range(seed.HOT_TABLES)
            ]
        )

    return make


def _wide(case: Case) -> list[bytes]:
    return [request(case, "GET", table_path(["wide"], f"t{table}"), user="reader") for table in range(seed.WIDE_TABLES)]


def _list(size: int, user: str) -> Callable[[Case], list[bytes]]:
    def make(case: Case) -> list[bytes]:
        return [request(case, "GET", f"{namespace_path([f'list{size}'])}/tables", user=user)] * case.connections

    return make


def _deep_tables(case: Case) -> list[bytes]:
    """Tables whose names are six levels deep, spread over the tree."""
    return _shuffled(
        [
            request(case, "HEAD", table_path(case.shape.leaf(leaf), f"t{table}"), user="reader")
            for leaf in seed.deep_leaves(case.shape)
            for table in range(seed.LEAF_TABLES)
        ]
    )


def _deep_namespaces(case: Case) -> list[bytes]:
    return _shuffled(
        [
            request(case, "GET", namespace_path((*case.shape.leaf(leaf), "deep")), user="reader")
            for leaf in seed.deep_leaves(case.shape)
        ]
    )


def _cold_namespaces(case: Case) -> list[bytes]:
    """Namespaces six levels deep that were never requested. Each measurement has its own share of them."""
    requested_leaves = frozenset(seed.deep_leaves(case.shape))
    leaves = [leaf for leaf in range(case.shape.leaves) if leaf not in requested_leaves]
    random.Random(11).shuffle(leaves)
    mine = leaves[case.part :: case.parts][:20_000]
    return [request(case, "GET", namespace_path((*case.shape.leaf(leaf), "deep")), user="reader") for leaf in mine]


def _create_tables(case: Case) -> list[bytes]:
    serial = next(_serial)
    path = f"{namespace_path(['made'])}/tables"
    width = 10  # a table of ten columns and ten properties, as for the compared products
    body = json.dumps(new_table("NAME", width=width), separators=(",", ":"))
    whole = request(case, "POST", path, user="writer", body=json.loads(body.replace("NAME", f"made_{serial:03}_00000")))
    return [whole.replace(b"_00000", b"_%05d" % i) for i in range(12_000)]


def _create_views(case: Case) -> list[bytes]:
    """Views of ten columns."""
    serial = next(_serial)
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {"engine-name": "bench"},
        "default-namespace": ["made"],
        "representations": [{"type": "sql", "sql": "SELECT * FROM made.t WHERE column_0001 > 10", "dialect": "spark"}],
    }
    body = {
        "name": f"view_{serial:03}_00000",
        "schema": new_table("", width=10)["schema"],
        "view-version": version,
        "properties": {},
    }
    whole = request(case, "POST", f"{namespace_path(['made'])}/views", user="writer", body=body)
    return [whole.replace(b"_00000", b"_%05d" % i) for i in range(12_000)]


def _load_views(case: Case) -> list[bytes]:
    """Each connection creates a view as its warm-up, and then loads that view."""
    creates, name = _create_views(case)[: case.connections], f"view_{next(_serial) - 1:03}"
    loads = [
        request(case, "GET", f"{namespace_path(['made'])}/views/{name}_{i:05}", user="writer")
        for i in range(case.connections)
    ]
    return creates + loads * (40_000 // case.connections)


def _create_namespaces(case: Case) -> list[bytes]:
    serial = next(_serial)
    path = f"{PREFIX}/namespaces"
    return [
        request(case, "POST", path, user="writer", body={"namespace": ["siblings", f"new_{serial:03}_{i:05}"]})
        for i in range(1_200)
    ]


def _commits(case: Case) -> list[bytes]:
    """Set a property. Each table belongs to one connection, so commits never conflict."""
    tables = seed.COMMIT_TABLES // case.connections * case.connections
    serial = next(_serial)
    return [
        request(
            case,
            "POST",
            table_path(["commits"], f"t{table}"),
            user="writer",
            body={
                "requirements": [],
                "updates": [{"action": "set-properties", "updates": {"bench": f"{serial}.{turn}"}}],
            },
        )
        for turn in range(8)
        for table in range(tables)
    ]


def _sets(size: int) -> Callable[[Case], list[bytes]]:
    """Set a property of several tables at once. Each table belongs to one connection, as far as there are enough."""

    def make(case: Case) -> list[bytes]:
        serial = next(_serial)
        sets_max = seed.COMMIT_TABLES // size
        sets = sets_max // case.connections * case.connections or sets_max  # with many connections some share a table
        return [
            request(
                case,
                "POST",
                f"{PREFIX}/transactions/commit",
                user="writer",
                body={"table-changes": [_change(number * size + each, f"{serial}.{turn}") for each in range(size)]},
            )
            for turn in range(8)
            for number in range(sets)
        ]

    return make


def _change(table: int, value: str) -> dict[str, object]:
    return {
        "identifier": {"namespace": ["commits"], "name": f"t{table}"},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"bench": value}}],
    }


def _keyed_commits(case: Case) -> list[bytes]:
    """Commits with idempotency keys.

    A request must not be repeated, because a repetition is answered without execution.
    """
    tables = seed.COMMIT_TABLES // case.connections * case.connections
    serial = next(_serial)
    return [
        request(
            case,
            "POST",
            table_path(["commits"], f"t{table}"),
            user="writer",
            body={
                "requirements": [],
                "updates": [{"action": "set-properties", "updates": {"bench": f"{serial}.{turn}"}}],
            },
            more=(f"Idempotency-Key: {new_uuid(time.time_ns() // 1_000_000)}",),
        )
        for turn in range(12_000 // tables)
        for table in range(tables)
    ]


def _repeated_commits(case: Case) -> list[bytes]:
    """A few commits with keys on each connection, repeated: only the first of each is executed."""
    return _keyed_commits(case)[: 4 * case.connections]


PAGE_SIZE: Final = 100


def _crowd_pages(size: int) -> Callable[[Case], list[bytes]]:
    """Pages that begin at random positions of a namespace."""

    def make(case: Case) -> list[bytes]:
        dice, path = (
            random.Random(next(_serial)),
            f"{namespace_path([f'crowd{size}'])}/tables?pageSize={PAGE_SIZE}&pageToken=",
        )
        return [
            request(case, "GET", path + page_token(seed.crowd_table(dice.randrange(size))), user="reader")
            for _ in range(2_000)
        ]

    return make


def page_token(name: str) -> str:
    """Return the token of the page after a name."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _crowd_creates(size: int) -> Callable[[Case], list[bytes]]:
    """Creates of tables in a namespace with many tables."""

    def make(case: Case) -> list[bytes]:
        serial, dice = next(_serial), random.Random(size)
        path = f"{namespace_path([f'crowd{size}'])}/tables"
        body = json.dumps(new_table("NAME", width=10), separators=(",", ":"))
        name = f"{seed.crowd_table(0)}_{serial:03}_00000"
        whole = request(case, "POST", path, user="writer", body=json.loads(body.replace("NAME", name)))
        places = [dice.randrange(size) for _ in range(6_000)]
        return [
            whole.replace(b"table_0000000", b"table_%07d" % place).replace(b"_00000", b"_%05d" % i)
            for i, place in enumerate(places)
        ]

    return make


def _crowd_mixed(size: int) -> Callable[[Case], list[bytes]]:
    """Three pages and a create in turn, on every connection."""

    def make(case: Case) -> list[bytes]:
        pages, creates = _crowd_pages(size)(case), _crowd_creates(size)(case)
        turns = len(creates) // case.connections
        requests: list[bytes] = []
        for turn in range(turns):
            for number in range(4 * case.connections):
                at = turn * case.connections + number % case.connections
                requests.append(creates[at] if number < case.connections else pages[(4 * at + number) % len(pages)])
        return requests

    return make


def _gravitino_loads(case: Case) -> list[bytes]:
    """Any of 1,000 tables, over Gravitino REST."""
    return _shuffled(
        [
            request(case, "GET", f"{SCHEMAS}/hot{space}/tables/t{table}", user="reader")
            for space in range(seed.HOT_NAMESPACES)
            for table in range(seed.HOT_TABLES)
        ]
    )


def _gravitino_list(case: Case) -> list[bytes]:
    return [request(case, "GET", f"{SCHEMAS}/list1000/tables", user="picker")] * case.connections


def _gravitino_creates(case: Case) -> list[bytes]:
    """Creates of tables with ten columns and ten properties, as over Iceberg REST."""
    serial = next(_serial)
    types = ("long", "string", "double", "timestamp_tz", "decimal(18,2)")
    column_specs = [
        {"name": f"column_{i:04}", "type": types[i % len(types)], "nullable": True, "comment": "what it holds"}
        for i in range(10)
    ]
    properties = new_table("", width=0)["properties"]
    body = {"name": f"gravitino_{serial:03}_00000", "comment": None, "columns": column_specs, "properties": properties}
    whole = request(case, "POST", f"{SCHEMAS}/made/tables", user="writer", body=body)
    return [whole.replace(b"_00000", b"_%05d" % i) for i in range(12_000)]


def _gravitino_alters(case: Case) -> list[bytes]:
    """Set a property. Each table belongs to one connection."""
    tables = seed.COMMIT_TABLES // case.connections * case.connections
    serial = next(_serial)
    return [
        request(
            case,
            "PUT",
            f"{SCHEMAS}/commits/tables/t{table}",
            user="writer",
            body={"updates": [{"@type": "setProperty", "property": "bench", "value": f"{serial}.{turn}"}]},
        )
        for turn in range(8)
        for table in range(tables)
    ]


def _changes(case: Case) -> list[bytes]:
    """The first hundred retained changes of the catalog, from the writes above, as their author sees them."""
    return [request(case, "GET", f"{CHANGES}?limit=100", user="writer")] * case.connections


def _no_changes(case: Case) -> list[bytes]:
    """The request of a follower without new changes."""
    return [request(case, "GET", f"{CHANGES}?after=now", user="writer")] * case.connections


_COMMITS_BESIDE: Final = Beside(lambda case: _commits(replace(case, connections=1)), 200.0)
"""Commits to the same catalog as the measured requests, but to other tables."""


def _crowds() -> tuple[Operation, ...]:
    operations: list[Operation] = []
    for size in seed.CROWDS:
        word = f"{size:,} siblings"
        operations += [
            Operation(
                key=f"crowd-page-{size}",
                title=f"page of {PAGE_SIZE} among {word}",
                requests=_crowd_pages(size),
                nodes_min=size,
            ),
            Operation(
                key=f"crowd-create-{size}",
                title=f"create among {word}",
                requests=_crowd_creates(size),
                writes=True,
                once=True,
                nodes_min=size,
                count_max=4_000,
            ),
            Operation(
                key=f"crowd-mixed-{size}",
                title=f"three pages and a create, {word}",
                requests=_crowd_mixed(size),
                writes=True,
                once=True,
                nodes_min=size,
                count_max=8_000,
            ),
        ]
    return tuple(operations)


# ------------------------------------------------------------------------------------------------- the list

_PICKED: Final = {size: min(seed.SINGLE_GRANTS, (size + 2) // 3) for size in seed.LISTS}
_PICKED[10_000] = seed.SINGLE_GRANTS - _PICKED[1_000]


def _lists(size: int) -> tuple[Operation, ...]:
    aim = 90.0 if size == 1_000 else None
    word = f"{size:,}"
    return (
        Operation(
            key=f"list-{size}-schema",
            title=f"list {word} tables, schema grant",
            requests=_list(size, "reader"),
            aim_us=aim,
            names=size,
        ),
        Operation(
            key=f"list-{size}-single",
            title=f"list {word} tables, 3,000 single grants",
            requests=_list(size, "picker"),
            aim_us=aim,
            names=_PICKED[size],
        ),
        Operation(
            key=f"list-{size}-deny",
            title=f"list {word} tables, one denied",
            requests=_list(size, "denied"),
            aim_us=aim,
            names=size - 1,
        ),
    )


OPERATIONS: Final = (
    Operation(key="head", title="HEAD table", requests=_hot("HEAD"), aim_us=0.8 * ALONE_WHEN_AIMED_US),
    Operation(key="load-6k", title="load table, 6 KB", requests=_hot("GET"), aim_us=1.1 * ALONE_WHEN_AIMED_US),
    Operation(
        key="beside-head",
        title="HEAD table, 200 commits/s beside",
        requests=_hot("HEAD"),
        beside=_COMMITS_BESIDE,
        aim_us=1.3 * ALONE_WHEN_AIMED_US,
    ),
    Operation(
        key="beside-load-6k",
        title="load table, 200 commits/s beside",
        requests=_hot("GET"),
        beside=_COMMITS_BESIDE,
        aim_us=1.6 * ALONE_WHEN_AIMED_US,
    ),
    Operation(key="load-200k", title="load table, 200 KB", requests=_wide),
    *_lists(1_000),
    *_lists(10_000),
    Operation(key="deep-table", title="HEAD table, six levels deep", requests=_deep_tables),
    Operation(key="deep-namespace", title="load namespace, six levels deep", requests=_deep_namespaces),
    Operation(
        key="deep-cold", title="the same, never asked before", requests=_cold_namespaces, once=True, big_tree_only=True
    ),
    Operation(
        key="create-table",
        title="create table",
        requests=_create_tables,
        aim_us=150,
        writes=True,
        once=True,
        files=(2, 2_300),
    ),
    Operation(key="create-view", title="create view", requests=_create_views, writes=True, once=True, files=(2, 1_900)),
    Operation(key="load-view", title="load view", requests=_load_views, writes=True, once=True, count_max=39_000),
    Operation(
        key="commit", title="commit, set one property", requests=_commits, aim_us=200, writes=True, files=(0, 6_500)
    ),
    Operation(
        key="commit-2",
        title="commit of 2 tables, set one property of each",
        requests=_sets(2),
        writes=True,
        files=(0, 13_000),
    ),
    Operation(key="commit-20", title="commit of 20 tables, set one property of each", requests=_sets(20), writes=True),
    Operation(
        key="commit-keyed",
        title="idempotent commit, each under a key",
        requests=_keyed_commits,
        writes=True,
        once=True,
        files=(0, 6_500),
    ),
    Operation(
        key="commit-repeated", title="the same commit again, under its key", requests=_repeated_commits, writes=True
    ),
    Operation(
        key="create-namespace",
        title="create namespace among 5,000",
        requests=_create_namespaces,
        writes=True,
        once=True,
        count_max=1_000,
    ),
    Operation(key="gravitino-load", title="Gravitino: load table, 6 KB", requests=_gravitino_loads),
    Operation(
        key="gravitino-list",
        title="Gravitino: list 1,000 tables, 3,000 single grants",
        requests=_gravitino_list,
        names=_PICKED[1_000],
    ),
    Operation(
        key="gravitino-create",
        title="Gravitino: create table",
        requests=_gravitino_creates,
        writes=True,
        once=True,
        files=(2, 2_300),
    ),
    Operation(
        key="gravitino-alter",
        title="Gravitino: alter table, set one property",
        requests=_gravitino_alters,
        writes=True,
        files=(0, 6_500),
    ),
    Operation(key="feed", title="changes: a hundred of a catalog's", requests=_changes),
    Operation(key="feed-quiet", title="changes: none", requests=_no_changes),
    *_crowds(),
)


def aim_of(operation: Operation, *, store: str, connections: int) -> float | None:
    """Return the target of a measurement in CPU µs, if it has one."""
    if operation.aim_us is None or connections != AIM_CONNECTIONS:
        return None
    if store == "sqlite":
        return operation.aim_us
    return None if operation.writes else operation.aim_us * POSTGRES_AIM
