# SPDX-License-Identifier: Apache-2.0
"""Lineage over HTTP: events are received and graphs returned. Edges to targets that the caller may not change are not
stored, and objects that the caller may not load are shown without a name.
"""

from __future__ import annotations

import itertools

import pytest

from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA, commit, make_table, make_view, metadata_of, table_path

LINEAGE = f"{OWN}/metalakes/lake/lineage"
HOST = "catalog.example.com:8090"
URI = f"http://{HOST}/iceberg"
clock = itertools.count()


def dataset(name: str, *, namespace: str = "limnos://lake", **facets: object) -> dict:
    """Return a dataset of an event, by its path or by another name."""
    return {"namespace": namespace, "name": name, "facets": facets}


def dataset_key(name: str) -> dict:
    """Return the key of a dataset in an answer."""
    return {"namespace": "limnos://lake", "name": name}


def link(
    source: str, field: str, *, namespace: str = "limnos://lake", kind: str = "DIRECT", subtype: str = "IDENTITY"
) -> dict:
    """Return an origin of a column."""
    how = {"type": kind, "subtype": subtype, "description": "", "masking": False}
    return {"namespace": namespace, "name": source, "field": field, "transformations": [how]}


def event(
    target: dict,
    *sources: dict,
    job: str = "job",
    run: str = "run-1",
    columns: dict | None = None,
    whole: tuple[dict, ...] = (),
    **more: object,
) -> dict:
    """Return an event of a completed run, one second after the previous event."""
    if columns is not None or whole:
        target = {
            **target,
            "facets": {
                **target["facets"],
                "columnLineage": {
                    "fields": {name: {"inputFields": links} for name, links in (columns or {}).items()},
                    "dataset": list(whole),
                },
            },
        }
    at = next(clock)
    return {
        "eventType": "COMPLETE",
        "eventTime": f"2026-01-31T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run},
        "job": {"namespace": "tests", "name": job},
        "inputs": list(sources),
        "outputs": [target],
    } | more


def send(node: DriverNode, *events: dict, user: str = "admin", path: str = LINEAGE) -> DriverAnswer:
    """Send one event as an object, several as an array."""
    return node.ask("POST", path, events[0] if len(events) == 1 else list(events), user=user, host=HOST)


def store_events(node: DriverNode, *events: dict, user: str = "admin") -> int:
    """Send events, all of which must be accepted. Returns the number of stored edges."""
    answer = send(node, *events, user=user)
    assert (answer.status, answer.json().get("left_out")) == (201, []), answer.body
    edge_count: int = answer.json()["kept"]
    return edge_count


def graph(node: DriverNode, query: str, *, user: str = "admin") -> dict:
    """Request a graph."""
    answer = node.get(f"{LINEAGE}?{query}", user=user)
    assert answer.status == 200, answer.body
    return answer.json()


def named(lineage: dict) -> list[tuple[str, str]]:
    """Return the edges of a graph as pairs of display names, source first."""

    def name(each: dict) -> str:
        whole = ".".join(each["path"]) if "path" in each else each.get("name") or each["id"]
        return f"{whole}/{each['column']}" if "column" in each else whole

    names = {each["id"]: name(each) for each in lineage["nodes"]}
    return sorted((names[edge["source"]], names[edge["target"]]) for edge in lineage["edges"])


def edges(node: DriverNode, query: str, *, user: str = "admin") -> list[tuple[str, str]]:
    """Request a graph and return its edges by name."""
    return named(graph(node, query, user=user))


def tables(node: DriverNode, *names: str) -> None:
    """Create tables in namespace `a`."""
    for name in names:
        make_table(node, "a", name)


@pytest.mark.parametrize("path", ["/api/lineage", "/api/v1/lineage", "/api/v1/lineage?metalake=lake", LINEAGE])
def test_event_creates_an_edge_in_both_directions(node: DriverNode, path: str) -> None:
    """Both event routes accept events. Graphs in both directions show the edge with its user, job, run and time."""
    tables(node, "s", "t")
    answer = send(node, event(dataset("main.a.t"), dataset("main.a.s")), path=path)
    up, down = graph(node, "path=main.a.t"), graph(node, "path=main.a.s&direction=down")

    assert (answer.status, answer.json()) == (201, {"kept": 1, "left_out": []})
    assert named(up) == named(down) == [("main.a.s", "main.a.t")]
    assert up["nodes"][0] | {"id": 0} == {"id": 0, "kind": "table", "path": ["main", "a", "t"]}
    assert up["root"] == up["nodes"][0]["id"]
    (edge,) = up["edges"]
    (statement,) = edge["said"]
    assert (edge["depth"], edge["direct"], statement["job"]) == (1, True, {"namespace": "tests", "name": "job"})
    assert (statement["run"], statement["by"], statement["at"][:10]) == ("run-1", "admin", "2026-01-31")
    assert (up["complete"], up["after"]) == (True, None)


def test_datasets_resolve_by_symlink_then_by_location(node: DriverNode) -> None:
    """Spark reports locations with a symlink: the symlink's name is used if it is a table here, else the location."""
    tables(node, "s", "t", "u")
    place = str(metadata_of(node, "a", "s")["location"]).removeprefix("file://")

    def link_to(uri: str, name: str) -> dict:
        return {"identifiers": [{"namespace": uri, "name": name, "type": "TABLE"}]}

    by_name = dataset(
        "/nowhere/x", namespace="file", symlinks=link_to(URI, "a.s"), catalog={"name": "main", "metadataUri": URI}
    )
    by_place = dataset(
        place, namespace="file", symlinks=link_to(URI, "b.gone"), catalog={"name": "other", "metadataUri": URI}
    )
    below = dataset(f"{place}/data", namespace="file")
    foreign = dataset(
        "/nowhere/y", namespace="file", symlinks=link_to("http://elsewhere/iceberg", "a.s"), catalog={"name": "main"}
    )
    assert store_events(node, event(dataset("main.a.t"), by_name)) == 1
    assert store_events(node, event(dataset("main.a.t"), by_place, job="two")) == 1
    assert store_events(node, event(dataset("main.a.t"), below, job="three")) == 1
    assert store_events(node, event(dataset("main.a.u"), foreign)) == 1

    (edge,) = graph(node, "path=main.a.t")["edges"]
    assert [each["job"]["name"] for each in edge["said"]] == ["three", "two", "job"]
    outside = graph(node, "path=main.a.u")["nodes"][1]
    assert (outside["kind"], outside["namespace"], outside["name"]) == ("outside", "http://elsewhere/iceberg", "a.s")


def test_warehouse_outranks_the_name_of_a_session(node: DriverNode) -> None:
    """The `catalog` facet's warehouse is a catalog here, its name is the session's own. A warehouse of another metalake
    is none of this server's tables; a location of files names no catalog.
    """
    tables(node, "s", "t")

    def of_spark(table: str, **facet: str) -> dict:
        link_to = {"identifiers": [{"namespace": URI, "name": f"a.{table}", "type": "TABLE"}]}
        catalog = {"framework": "iceberg", "type": "rest", "metadataUri": URI, "source": "spark", **facet}
        return dataset(f"/nowhere/{table}", namespace="file", symlinks=link_to, catalog=catalog)

    for number, facet in enumerate(
        (
            {"name": "lake", "warehouseUri": "main"},
            {"name": "lake", "warehouseUri": "lake/main"},
            {"name": "main", "warehouseUri": "s3://bucket/warehouse"},
        )
    ):
        assert store_events(node, event(of_spark("t", **facet), of_spark("s", **facet), job=f"job {number}")) == 1
    for facet in ({"name": "main", "warehouseUri": "other/main"}, {"name": "main", "warehouseUri": "gone"}):
        assert send(node, event(of_spark("t", **facet), of_spark("s", **facet))).status == 403

    (edge,) = graph(node, "path=main.a.t")["edges"]
    assert [each["job"]["name"] for each in edge["said"]] == ["job 2", "job 1", "job 0"]


DUCKDB, TRINO, SPARK = "duckdb:///home/ana/shop/dev.duckdb", "trino://trino.example.com:8080", "spark://spark:10001"
PRODUCERS = {
    "lineage.namespace.duckdb://*": "lake=main, Other=gone",
    f"lineage.namespace.{TRINO}": "iceberg = main",
    "lineage.namespace.spark://*": "*=main",
}
JOB_FACETS = {"jobType": {"integration": "DBT", "jobType": "MODEL", "processingType": "BATCH"}}


def set_properties(node: DriverNode, properties: dict[str, str]) -> DriverAnswer:
    """Set properties of the metalake."""
    updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in properties.items()]
    return node.ask("PUT", "/api/metalakes/lake", {"updates": updates})


@pytest.mark.parametrize(
    "namespace, prefix, job",
    [
        (DUCKDB, "lake.", {"namespace": "dbt", "name": "lake.a.shop.totals", "facets": JOB_FACETS}),
        (TRINO, "iceberg.", {"namespace": "trino.example.com", "name": "20260131_120000_00001_abcde"}),
        (SPARK, "", {"namespace": "dbt", "name": "a.shop.totals", "facets": JOB_FACETS}),
    ],
    ids=["dbt on DuckDB", "Trino", "dbt on Spark"],
)
def test_namespaces_of_producers_map_to_catalogs(node: DriverNode, namespace: str, prefix: str, job: dict) -> None:
    """Datasets of dbt and of engines are tables of the catalogs to which the metalake's properties map their names,
    with their columns. Without the property the answer says which one is missing.
    """
    tables(node, "orders", "totals")
    columns = {
        "fields": {
            "city": {
                "inputFields": [
                    {
                        "namespace": namespace,
                        "name": f"{prefix}a.orders",
                        "field": "city",
                        "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                    }
                ]
            }
        }
    }
    schema = {"fields": [{"name": "city", "type": "varchar"}]}
    target = dataset(f"{prefix}a.totals", namespace=namespace, columnLineage=columns, schema=schema)
    sent = {**event(target, dataset(f"{prefix}a.orders", namespace=namespace, schema=schema)), "job": job}
    unmapped = send(node, sent).json()
    assert (unmapped["kept"], [each["name"] for each in unmapped["left_out"]]) == (
        0,
        [f"{prefix}a.totals", f"{prefix}a.orders"],
    )
    assert all(f"lineage.namespace.{namespace} = NAME=CATALOG" in each["reason"] for each in unmapped["left_out"])

    assert set_properties(node, PRODUCERS).status == 200

    assert send(node, sent).json() == {"kept": 1, "left_out": []}
    assert edges(node, "path=main.a.totals") == [("main.a.orders", "main.a.totals")]
    assert edges(node, "path=main.a.totals&column=city") == [("main.a.orders/city", "main.a.totals/city")]
    lost = send(node, event(dataset("main.a.totals"), dataset(f"{prefix}a.gone", namespace=namespace))).json()
    assert (lost["kept"], lost["left_out"][0]["name"]) == (0, f"{prefix}a.gone"), "it is no dataset of another system"
    if prefix:
        elsewhere = dataset("memory.a.x", namespace=namespace)
        assert store_events(node, event(dataset("main.a.totals"), elsewhere, job="load")) == 1


@pytest.mark.parametrize("value", ["main", "=main", "lake=", "lake=main,", ""])
def test_malformed_map_of_a_namespace_is_400(node: DriverNode, value: str) -> None:
    """A property that maps no names to catalogs is refused where it is set."""
    answer = set_properties(node, {"lineage.namespace.duckdb://*": value})

    assert (answer.status, b"lake=main" in answer.body) == (400, True)


@pytest.mark.room("lance")
def test_table_directly_in_a_catalog_has_lineage(node: DriverNode) -> None:
    """Events and graphs take a Lance table directly in its catalog by its path of two names."""
    tables(node, "s")
    node.done("POST", "/lance/v1/table/lance$docs/declare", {})

    assert store_events(node, event(dataset("lance.docs"), dataset("main.a.s"))) == 1

    assert edges(node, "path=lance.docs") == edges(node, "path=main.a.s&direction=down") == [("main.a.s", "lance.docs")]


def test_a_location_outranks_a_wrong_name(node: DriverNode) -> None:
    """If the reported name is one table and the location another table's, the location decides."""
    tables(node, "s", "t", "u")
    place = str(metadata_of(node, "a", "u")["location"]).removeprefix("file://")
    symlinks = {"identifiers": [{"namespace": URI, "name": "a.s", "type": "TABLE"}]}
    store_events(
        node, event(dataset("main.a.t"), dataset(place, namespace="file", symlinks=symlinks, catalog={"name": "main"}))
    )

    assert edges(node, "path=main.a.t") == [("main.a.u", "main.a.t")]


def test_names_follow_renames_and_moves(node: DriverNode) -> None:
    """After renames and moves of the table or its namespace, edges and columns show the new names and are otherwise
    unchanged.
    """
    tables(node, "s", "t")
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s"), columns={"city": [link("main.a.s", "city")]}))
    move = f"{OWN}/metalakes/lake/catalogs/main/move"
    node.done("POST", move, {"kind": "table", "source": ["a", "s"], "target": ["a", "renamed"]})
    node.done("POST", move, {"kind": "namespace", "source": ["a"], "target": ["b"]})
    schema = metadata_of(node, "b", "renamed")["schemas"][0]  # type: ignore[index]
    fields = [{**each, "name": "town"} if each["name"] == "city" else each for each in schema["fields"]]
    commit(
        node,
        "b",
        "renamed",
        updates=[
            {"action": "add-schema", "schema": {**schema, "schema-id": 1, "fields": fields}, "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    )
    make_table(node, "a", "s")

    assert edges(node, "path=main.b.t") == [("main.b.renamed", "main.b.t")]
    assert edges(node, "path=main.b.t&column=city") == [("main.b.renamed/town", "main.b.t/city")]
    assert edges(node, "path=main.b.renamed&column=town&direction=down") == [("main.b.renamed/town", "main.b.t/city")]
    assert edges(node, "path=main.a.s&direction=down") == []


def test_column_lineage_follows_direct_origins_across_tables(node: DriverNode) -> None:
    """Lineage of a column follows direct origins through several tables. Filters are indirect origins and are not
    followed.
    """
    tables(node, "s", "m", "t")
    store_events(
        node,
        event(
            dataset("main.a.m"),
            dataset("main.a.s"),
            columns={
                "id": [link("main.a.s", "id")],
                "city": [link("main.a.s", "city", subtype="TRANSFORMATION")],
            },
        ),
    )
    store_events(
        node,
        event(
            dataset("main.a.t"),
            dataset("main.a.m"),
            columns={"city": [link("main.a.m", "city", subtype="AGGREGATION")]},
            whole=(link("main.a.m", "id", kind="INDIRECT", subtype="FILTER"),),
        ),
    )
    up = graph(node, "path=main.a.t&column=city&depth=5")
    down = edges(node, "path=main.a.s&column=city&direction=down&depth=5")
    ids = edges(node, "path=main.a.s&column=id&direction=down&depth=5")

    assert named(up) == [
        ("main.a.m/city", "main.a.t/city"),
        ("main.a.m/id", "main.a.t/city"),
        ("main.a.s/city", "main.a.m/city"),
    ]
    kinds = sorted((edge["depth"], edge["direct"], edge["said"][0]["kinds"][0]) for edge in up["edges"])
    assert kinds == [(1, False, "FILTER"), (1, True, "AGGREGATION"), (2, True, "TRANSFORMATION")]
    assert down == [("main.a.m/city", "main.a.t/city"), ("main.a.s/city", "main.a.m/city")]
    assert ids == [("main.a.m/id", "main.a.t"), ("main.a.s/id", "main.a.m/id")]
    assert graph(node, "path=main.a.t")["edges"][0]["said"][0]["kinds"] == ["AGGREGATION", "FILTER"]
    assert node.get(f"{LINEAGE}?path=main.a.t&column=none").status == 404


def test_former_columns_are_hidden_from_restricted_users(node: DriverNode) -> None:
    """A user whom a restriction binds sees the lineage of a column, but not the name of a column that its table had
    before.
    """
    tables(node, "s", "t")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s"), columns={"city": [link("main.a.s", "city")]}))
    id_alone = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
    updates = [{"action": "add-schema", "schema": id_alone}, {"action": "set-current-schema", "schema-id": -1}]
    assert commit(node, "a", "s", updates=updates).status == 200
    before = named(graph(node, "path=main.a.t&column=city", user="ana"))
    terms = {"masks": {"id": "replace-with-null"}, "to": {"users": ["ana"]}}
    node.done("PUT", f"{OWN}/metalakes/lake/objects/TABLE/main.a.s/restrictions/r", terms)

    assert before == [("main.a.s/city", "main.a.t/city")]
    assert named(graph(node, "path=main.a.t&column=city", user="ana")) == [("main.a.s", "main.a.t/city")]


def test_graph_depth_is_bounded_and_cycles_visited_once(node: DriverNode) -> None:
    """A graph has at most the requested depth, visits a cycle once, and has no edge from a table to itself."""
    tables(node, "s", "m", "t")
    for source, target in (("s", "m"), ("m", "t"), ("t", "s"), ("t", "t")):
        store_events(node, event(dataset(f"main.a.{target}"), dataset(f"main.a.{source}"), job=target))

    one, many = edges(node, "path=main.a.t&depth=1"), edges(node, "path=main.a.t&depth=9")
    assert one == [("main.a.m", "main.a.t")]
    assert many == [("main.a.m", "main.a.t"), ("main.a.s", "main.a.m"), ("main.a.t", "main.a.s")]


def test_newer_run_replaces_edges_of_its_job(node: DriverNode) -> None:
    """The newest run of a job replaces its earlier edges, and events of one parent run add up. Late events are ignored,
    and other jobs are unaffected.
    """
    tables(node, "q", "r", "s", "t")
    q, r, s, t = (dataset(f"main.a.{name}") for name in "qrst")

    def within(parent: str, *sources: dict) -> dict:
        facets = {"parent": {"run": {"runId": parent}, "job": {"namespace": "n", "name": "p"}}}
        run_event = event(t, *sources)
        return run_event | {"run": {"runId": f"{parent}-{run_event['eventTime']}", "facets": facets}}

    late = event(t, s, run="old")
    store_events(node, event(t, q, job="other"))
    store_events(node, event(t, r, run="one"))
    store_events(node, event(t, s, run="two"))
    replaced = edges(node, "path=main.a.t")
    store_events(node, within("three", r))
    store_events(node, within("three", dataset("x", namespace="kafka://k")))

    assert replaced == [("main.a.q", "main.a.t"), ("main.a.s", "main.a.t")]
    assert store_events(node, late) == 0
    assert edges(node, "path=main.a.t") == [("main.a.q", "main.a.t"), ("main.a.r", "main.a.t"), ("x", "main.a.t")]


@pytest.mark.parametrize("noise", ["START", "RUNNING", "FAIL", "ABORT", "no inputs", "no outputs", "dataset"])
def test_incomplete_events_store_no_edge(node: DriverNode, noise: str) -> None:
    """Events of runs that have not completed, or without sources or targets, are answered 201 and store no edge."""
    tables(node, "s", "t")
    incomplete_event = event(dataset("main.a.t"), dataset("main.a.s"))
    if noise == "dataset":
        incomplete_event = {
            "eventTime": incomplete_event["eventTime"],
            "dataset": {"namespace": "limnos://lake", "name": "main.a.t"},
        }
    elif noise.startswith("no "):
        incomplete_event[noise[3:]] = []
    else:
        incomplete_event["eventType"] = noise

    assert store_events(node, incomplete_event) == 0
    assert edges(node, "path=main.a.t") == []


def test_streaming_and_job_events_store_edges(node: DriverNode) -> None:
    """`RUNNING` events of a streaming job, and job events without a run, store edges."""
    tables(node, "s", "t", "u")
    stream = event(dataset("main.a.t"), dataset("main.a.s"), eventType="RUNNING")
    stream["job"]["facets"] = {"jobType": {"processingType": "STREAMING"}}
    described = event(dataset("main.a.u"), dataset("main.a.s"))
    for key in ("run", "eventType"):
        del described[key]

    assert store_events(node, stream, described) == 2
    assert edges(node, "path=main.a.s&direction=down") == [("main.a.s", "main.a.t"), ("main.a.s", "main.a.u")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"{}",
        b'{"eventTime":"x"}',
        b'{"eventTime":"2026-01-31T00:00:00Z"}',
        b'{"eventTime":"2026-01-31T00:00:00","job":{"namespace":"n","name":"j"}}',
        b'{"eventTime":"2026-01-31T00:00:00Z","job":{"namespace":"n"}}',
        b'{"eventTime":"2026-01-31T00:00:00Z","job":{"namespace":"n","name":"a\\u0000b"}}',
        b'{"eventTime":"2026-01-31T00:00:00Z","job":{"namespace":"n","name":"j"},"inputs":[{"name":"x"}]}',
        b"[" + b",".join([b'{"eventTime":"2026-01-31T00:00:00Z","job":{"namespace":"n","name":"j"}}'] * 101) + b"]",
    ],
)
def test_malformed_event_is_400(node: DriverNode, body: bytes) -> None:
    """A malformed event is refused with 400 and a message."""
    answer = node.ask("POST", LINEAGE, body)

    assert answer.status == 400
    assert len(answer.json()["error"]["message"]) > 20


def test_array_with_an_invalid_event_is_refused(node: DriverNode) -> None:
    """An array with one invalid event is refused as a whole, and none of its edges are stored."""
    tables(node, "s", "t")

    assert send(node, event(dataset("main.a.t"), dataset("main.a.s")), {"eventTime": 1}).status == 400
    assert edges(node, "path=main.a.t") == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        "path=main",
        "path=main.a.t&direction=x",
        "path=main.a.t&depth=0",
        "path=main.a.t&depth=51",
        "path=main.a.t&limit=0",
        "path=main.a.t&after=x",
        "path=main.a.t&after=1-ab",
    ],
)
def test_invalid_query_parameters_are_400(node: DriverNode, query: str) -> None:
    """A missing path, or an invalid direction, number or cursor, is 400."""
    tables(node, "t")

    assert node.get(f"{LINEAGE}?{query}").status == 400


def test_pages_add_up_to_the_graph_or_are_refused_if_stale(node: DriverNode) -> None:
    """Pages of edges add up to the whole graph. A page is refused if the lineage changed after the first one."""
    names = [f"s{number}" for number in range(5)]
    tables(node, "t", *names)
    store_events(node, event(dataset("main.a.t"), *(dataset(f"main.a.{name}") for name in names)))
    pages, after = [], ""
    while after is not None:
        pages.append(graph(node, f"path=main.a.t&limit=2{after and f'&after={after}'}"))
        after = pages[-1]["after"]
    first = pages[0]["after"]
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s4"), run="run-2"))

    assert [len(page["edges"]) for page in pages] == [2, 2, 1]
    assert sorted(edge for page in pages for edge in named(page)) == [(f"main.a.{name}", "main.a.t") for name in names]
    assert node.get(f"{LINEAGE}?path=main.a.t&limit=2&after={first}").status == 400


def test_edges_to_targets_without_write_access_are_not_stored(node: DriverNode) -> None:
    """Edges to targets that the caller may not change are not stored. Hidden and missing objects get the same
    answer.
    """
    tables(node, "t", "s", "hidden")
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "ana", "modify_table", kind="TABLE", on="main.a.t")
    grant(node, "ana", "select_table", kind="TABLE", on="main.a.s")

    def answer(target: str, *sources: str) -> DriverAnswer:
        return send(node, event(dataset(target), *map(dataset, sources)), user="ana")

    mixed = answer("main.a.t", "main.a.s", "main.a.hidden", "main.a.gone", "main.no.s", "none.a.s").json()
    refused = [answer(target, "main.a.t") for target in ("main.a.s", "main.a.hidden", "main.a.gone")]
    both = send(
        node,
        event(dataset("main.a.t"), dataset("main.a.s")),
        event(dataset("main.a.s"), dataset("main.a.t")),
        user="ana",
    ).json()

    assert mixed["kept"] == 1
    assert [each["name"] for each in mixed["left_out"]] == ["main.a.hidden", "main.a.gone", "main.no.s", "none.a.s"]
    see, change = (f"no table or view that you may {verb} has this name or location" for verb in ("see", "change"))
    assert {each["reason"] for each in mixed["left_out"]} == {see}
    assert [each.status for each in refused] == [403] * 3
    messages = [each.json()["error"]["message"] for each in refused]
    assert {text.replace("hidden", "s").replace("gone", "s") for text in messages} == {messages[0]}
    assert (both["kept"], both["left_out"]) == (1, [{**dataset_key("main.a.s"), "reason": change}])
    assert edges(node, "path=main.a.t") == [("main.a.s", "main.a.t")]
    assert graph(node, "path=main.a.t")["edges"][0]["said"][0]["by"] == "ana"


def test_hidden_table_is_an_unnamed_end_of_the_graph(node: DriverNode) -> None:
    """A hidden table is one unnamed node. The graph shows nothing beyond it, and no users or jobs of its edges."""
    tables(node, "far", "hidden", "t", "u", "v")
    make_view(node, "a", "w")
    for source, target in (("far", "hidden"), ("hidden", "t"), ("hidden", "u"), ("u", "t"), ("w", "t")):
        links = {"city": [link(f"main.a.{source}", "city")]}
        store_events(
            node,
            event(dataset(f"main.a.{target}"), dataset(f"main.a.{source}"), job=f"{source}-{target}", columns=links),
        )
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    for name in ("t", "u", "far"):
        grant(node, "ana", "select_table", kind="TABLE", on=f"main.a.{name}")
    lineage = graph(node, "path=main.a.t&depth=9", user="ana")
    columns = graph(node, "path=main.a.t&column=city&depth=9", user="ana")
    text = node.get(f"{LINEAGE}?path=main.a.t&depth=9", user="ana").body.decode()

    assert named(lineage) == sorted(
        [
            ("hidden-1", "main.a.t"),
            ("hidden-1", "main.a.u"),
            ("main.a.u", "main.a.t"),
            ("hidden-2", "main.a.t"),
        ]
    )
    assert {tuple(edge) for edge in lineage["edges"] if edge["source"].startswith("hidden")} == {
        ("source", "target", "depth")
    }
    assert {tuple(each) for each in lineage["nodes"] if each["kind"] == "hidden"} == {("id", "kind")}
    assert "far" not in text
    assert "hidden-t" not in text
    assert "far" not in str(columns)
    assert [edge for edge in named(columns) if "hidden-1" in edge] == [
        ("hidden-1", "main.a.t/city"),
        ("hidden-1", "main.a.u/city"),
    ]
    for name in ("hidden", "gone"):
        assert node.get(f"{LINEAGE}?path=main.a.{name}", user="ana").status == 403
    assert edges(node, "path=main.a.far&direction=down&depth=9", user="ana") == [("main.a.far", "hidden-1")]


def test_edges_of_a_dropped_table_reappear_after_undrop(node: DriverNode) -> None:
    """Edges of a dropped table are not shown until it is undropped. The sweep deletes edges of tables dropped for
    good.
    """
    tables(node, "s", "t")
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s"), columns={"id": [link("main.a.s", "id")]}))
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    node.delete(table_path("a", "s"))
    edges_after_drop = edges(node, "path=main.a.t")
    node.runner.run(node.built.upkeep.sweep())
    number = node.done("GET", trash)["trash"][0]["id"]
    node.done("POST", f"{trash}/{number}/undrop", {})
    back = edges(node, "path=main.a.t"), edges(node, "path=main.a.t&column=id")
    node.delete(table_path("a", "s"))
    node.done("DELETE", f"{trash}/{node.done('GET', trash)['trash'][0]['id']}")
    node.runner.run(node.built.upkeep.sweep())

    assert edges_after_drop == []
    assert back == ([("main.a.s", "main.a.t")], [("main.a.s/id", "main.a.t/id")])
    assert edges(node, "path=main.a.t") == []


def test_recreated_table_inherits_no_lineage(node: DriverNode) -> None:
    """A table created under the name of a dropped one inherits no lineage."""
    tables(node, "s", "t")
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s")))
    node.delete(table_path("a", "t"))
    make_table(node, "a", "t")

    assert edges(node, "path=main.a.t") == []
    assert edges(node, "path=main.a.s&direction=down") == []


def test_external_dataset_connects_tables(node: DriverNode) -> None:
    """An external dataset that is written by one job and read by another connects their tables."""
    tables(node, "s", "t")
    file = dataset("dir/x.csv", namespace="s3://bucket")
    assert store_events(node, event(file, dataset("main.a.s"))) == 1
    assert store_events(node, event(dataset("main.a.t"), file)) == 1
    unrelated = send(node, event(file, dataset("y", namespace="s3://other"))).json()
    assert (unrelated["kept"], [each["name"] for each in unrelated["left_out"]]) == (0, ["dir/x.csv", "y"])

    assert edges(node, "path=main.a.t&depth=3") == [("dir/x.csv", "main.a.t"), ("main.a.s", "dir/x.csv")]
    assert edges(node, "path=main.a.s&depth=3&direction=down") == [("dir/x.csv", "main.a.t"), ("main.a.s", "dir/x.csv")]


def test_non_member_can_neither_report_nor_read_lineage(node: DriverNode) -> None:
    """A user who is not in the metalake may neither report nor read lineage, even with events that store nothing."""
    tables(node, "t")
    for path in (LINEAGE, "/api/lineage", "/api/v1/lineage", f"{OWN}/metalakes/none/lineage"):
        assert send(node, event(dataset("main.a.t")), user="stranger", path=path).status == 403
    assert send(node, event(dataset("main.a.t")), user=None).status == 403
    assert node.get(f"{LINEAGE}?path=main.a.t", user="stranger").status == 403


def test_long_events_need_the_right_to_change_a_table(node: DriverNode) -> None:
    """Events of 64 KiB to one megabyte are accepted only from users who may change a table."""
    tables(node, "s", "t")
    grant(node, "ana", "select_table", kind="CATALOG", on="main")
    long = event(dataset("main.a.t"), dataset("main.a.s"), filler="x" * 100_000)

    assert send(node, long, user="ana", path="/api/v1/lineage").status == 403
    assert send(node, long, path="/api/v1/lineage").status == 201
    assert send(node, long | {"filler": "x" * (1 << 20)}).status == 413


def test_edges_cross_catalogs_and_hide_unusable_ones(node: DriverNode) -> None:
    """Edges may cross catalogs. Objects in unusable or disabled catalogs are hidden, those of dropped catalogs are not
    shown.
    """
    tables(node, "t")
    catalogs, root = "/api/metalakes/lake/catalogs", "/iceberg/v1/lake.side"
    node.done("POST", catalogs, {"name": "side", "type": "RELATIONAL", "provider": "lakehouse-iceberg"})
    node.done("POST", f"{root}/namespaces", {"namespace": ["b"]})
    node.done("POST", f"{root}/namespaces/b/tables", {"name": "s", "schema": SCHEMA})
    store_events(node, event(dataset("main.a.t"), dataset("side.b.s"), columns={"id": [link("side.b.s", "id")]}))
    grant(node, "ana", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    query = "path=main.a.t&depth=3"
    visible_edges, hidden = edges(node, query), edges(node, query, user="ana")
    columns = edges(node, f"{query}&column=id")
    refused = send(node, event(dataset("main.a.t"), dataset("side.b.s"), job="hers"), user="ana").json()
    node.patch(f"{catalogs}/side", {"inUse": False})
    disabled = edges(node, query)
    node.patch(f"{catalogs}/side", {"inUse": True})
    assert node.delete(f"{root}/namespaces/b/tables/s").status == 204

    assert visible_edges == [("side.b.s", "main.a.t")]
    assert columns == [("side.b.s/id", "main.a.t/id")]
    assert hidden == disabled == [("hidden-1", "main.a.t")]
    assert (refused["kept"], refused["left_out"][0]["name"]) == (0, "side.b.s")
    assert edges(node, query) == edges(node, query, user="ana") == []


def test_all_lineage_is_open_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, every user may report and read all lineage."""
    tables(open_node, "s", "t")

    assert store_events(open_node, event(dataset("main.a.t"), dataset("main.a.s")), user="somebody") == 1
    assert edges(open_node, "path=main.a.t", user="another") == [("main.a.s", "main.a.t")]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_event_time_beyond_the_supported_years_is_400(node: DriverNode, at: str) -> None:
    """A time zone offset that moves the time beyond the supported years is 400."""
    make_table(node, "a", "t")

    assert send(node, event(dataset("main.a.t"), dataset("main.a.s"), eventTime=at)).status == 400


@pytest.mark.parametrize(
    "namespace", ["http://[::1", "s3://[bucket", "limnos://[lake", "http://a:99999999", "file://[x"]
)
def test_unparsable_namespace_names_an_external_dataset(node: DriverNode, namespace: str) -> None:
    """A namespace that cannot be parsed as an address names an external dataset."""
    make_table(node, "a", "t")

    answer = send(node, event(dataset("main.a.t"), dataset("x", namespace=namespace)))

    assert (answer.status, answer["kept"]) == (201, 1)


def test_future_event_does_not_block_later_events(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event with a future time counts as sent now, so it cannot block later events of the job."""
    for name in "tsu":
        make_table(node, "a", name)
    store_events(node, event(dataset("main.a.t"), dataset("main.a.s"), run="one", eventTime="9999-01-01T00:00:00Z"))

    time = node.built.services.store.time
    later_ms = time.now_ms() + 1000
    monkeypatch.setattr(time, "now_ms", lambda: later_ms)
    store_events(node, event(dataset("main.a.t"), dataset("main.a.u"), run="two", eventTime="9998-01-01T00:00:00Z"))

    edges = node.get(f"{LINEAGE}?path=main.a.t").json()["edges"]
    assert [each["said"][0]["run"] for each in edges] == ["two"]


def test_lineage_needs_use_schema(node: DriverNode) -> None:
    """Privileges on tables and views without USE_SCHEMA give no access to lineage, as for loading."""
    tables(node, "t")
    make_view(node, "a", "w")
    grant(node, "ana", "use_catalog select_table select_view", kind="CATALOG", on="main")

    for name in ("t", "w"):
        assert node.get(f"{LINEAGE}?path=main.a.{name}", user="ana").status == 403
