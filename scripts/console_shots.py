# SPDX-License-Identifier: Apache-2.0
"""Screenshots of the console's pages, in light and dark and in three widths: `make console-shots`.

Starts a server on a free port over a new directory, fills it with a small lake, and opens each page in Chromium. The
screenshots are for people; no test compares them. Needs Playwright (group `dev`) and a Chromium.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright
    from pyiceberg.catalog import Catalog

NASTY = '<script>alert(1)</script> "quoted" ../up \u202eright-to-left \N{PILE OF POO}'
"""A name with letters that break careless pages; object names omit the direction mark."""
ARROW = "application/vnd.apache.arrow.stream"
WIDTHS = (1280, 390, 2560)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
HEIGHT, HEIGHT_MAX = 900, 2200
"""Pixels of a screenshot: a longer page is truncated."""


class LakeServer:
    """A server over a new directory, as a subprocess."""

    def __init__(self, data: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "limnos.cli.main",
            "server",
            "start",
            "--data",
            str(data),
            "--listen",
            "127.0.0.1:0",
            "--authentication",
            "simple",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url = next(line.split()[1] for line in self.process.stdout if line.startswith("ready "))
        self.console = next(line.split()[1] for line in self.process.stdout if line.split()[:1] == ["Console"])

    def ask(self, method: str, path: str, body: object = None, *, user: str = "admin") -> dict[str, Any]:
        """Send a request as a user; a body of bytes is an Arrow stream, and a refused request raises an error."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {
            "authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode(),
            "content-type": ARROW if isinstance(body, bytes) else "application/json",
        }
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        answered: dict[str, Any] = json.loads(text) if text else {}
        return answered

    def stop(self) -> None:
        """Stop the server."""
        with self.process as process:  # closes its output
            process.terminate()
            process.wait(timeout=30)


def fields(count: int) -> list[dict[str, object]]:
    """Columns of a wide table."""
    types = ("long", "string", "double", "timestamptz", "date", "boolean", "decimal(18, 2)")
    words = ("price_id", "click_name", "sensor_amount", "account_at", "customer_day", "flight_ok", "return_total")
    return [
        {
            "id": at + 1,
            "name": f"{words[at % 7]}_{at}",
            "required": at % 9 == 0,
            "type": types[at % 7],
            **(
                {"doc": f"What the source says of field {at}; checked nightly against the ledger."}
                if at % 3 == 0
                else {}
            ),
        }
        for at in range(count)
    ]


def fill(server: LakeServer) -> None:
    """Create a lake with ordinary and with unusual names."""
    iceberg, lake = "/iceberg/v1/lake.main", "/api/metalakes/lake"
    for levels in (["raw"], ["raw", "nyc"], ["curated"], ["big"], ['<b>nasty</b> "name"']):
        server.ask(
            "POST", f"{iceberg}/namespaces", {"namespace": levels, "properties": {"comment": "of three airports"}}
        )
    nested = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "flight_id", "required": True, "type": "long", "doc": "number in the bureau's files"},
            {"id": 2, "name": "carrier", "required": False, "type": "string"},
            {
                "id": 3,
                "name": "origin",
                "required": False,
                "doc": NASTY,
                "type": {
                    "type": "struct",
                    "fields": [
                        {"id": 4, "name": "airport", "required": True, "type": "string"},
                        {
                            "id": 5,
                            "name": "delays",
                            "required": False,
                            "type": {"type": "list", "element-id": 6, "element": "int", "element-required": False},
                        },
                    ],
                },
            },
        ],
    }
    flights = {
        "name": "flights",
        "schema": nested,
        "properties": {"comment": "Flights of three airports, from the bureau's files"},
    }
    server.ask("POST", f"{iceberg}/namespaces/raw%1Fnyc/tables", flights)
    wide = {
        "name": "wide",
        "schema": {"type": "struct", "fields": fields(405)},
        "properties": {"comment": "Everything the ledger knows"},
    }
    server.ask("POST", f"{iceberg}/namespaces/raw%1Fnyc/tables", wide)
    for number in range(130):
        small = {"name": f"accounts_{number:05}", "schema": {"type": "struct", "fields": fields(3)}}
        server.ask("POST", f"{iceberg}/namespaces/big/tables", small)
    server.ask("DELETE", f"{iceberg}/namespaces/big/tables/accounts_00000")
    server.ask(
        "POST",
        f"{iceberg}/namespaces/curated/tables",
        {"name": "<script>alert(1)<", "schema": nested, "properties": {"comment": NASTY}},
    )
    server.ask("POST", f"{lake}/users", {"name": "ana"})
    server.ask("POST", f"{lake}/users", {"name": "bot"})
    privileges = [{"name": name, "condition": "allow"} for name in ("use_catalog", "use_schema", "select_table")]
    objects = [{"fullName": "main", "type": "CATALOG", "privileges": privileges}]
    server.ask("POST", f"{lake}/roles", {"name": "readers", "properties": {}, "securableObjects": objects})
    server.ask("POST", f"{lake}/groups", {"name": "staff"})
    server.ask("POST", "/api/limnos/v1/metalakes/lake/groups/staff/members", {"users": ["ana"]})
    server.ask("PUT", f"{lake}/permissions/users/ana/grant", {"roleNames": ["readers"]})
    compaction = {"name": "tidy", "policyType": "system_iceberg_compaction", "content": {}, "comment": "Small files"}
    server.ask("POST", f"{lake}/policies", compaction)
    server.ask("POST", f"{lake}/objects/catalog/main/policies", {"policiesToAdd": ["tidy"], "policiesToRemove": []})
    server.ask("POST", "/api/metalakes", {"name": "elsewhere", "comment": "", "properties": {}})
    server.ask("POST", "/api/metalakes/elsewhere/users", {"name": "robot"})
    for name in ("bot", "robot"):
        server.ask("POST", f"/api/limnos/v1/users/{name}/secrets", {})
    server.ask("POST", "/api/limnos/v1/tokens", {"name": "laptop"})
    server.ask("POST", f"{lake}/tags", {"name": "pii", "comment": "personal", "properties": {}})
    server.ask("POST", f"{lake}/objects/table/main.raw:nyc.flights/tags", {"tagsToAdd": ["pii"], "tagsToRemove": []})


def iceberg_catalog(server: LakeServer) -> Catalog:
    """Connect PyIceberg to the catalog `main` as the administrator."""
    from pyiceberg.catalog import load_catalog

    properties: dict[str, Any] = {
        "type": "rest",
        "uri": f"{server.url}/iceberg",
        "warehouse": "main",
        "auth": {"type": "basic", "basic": {"username": "admin", "password": ""}},
    }
    return load_catalog("lake", **properties)


RUN = "3f6f1c9a-20b5-4a4e-9b52-1d2c3b4a5f60"


def fill_runs(server: LakeServer) -> None:
    """Add a pipeline with runs, lineage with a cycle, and a table with rows."""
    import pyarrow as pa

    own = "/api/limnos/v1/metalakes/lake"
    catalog = iceberg_catalog(server)
    rows = pa.table(
        {"id": list(range(60)), "city": ["Oslo", "Rome", "Turin"] * 20, "fare": [each / 7 for each in range(60)]}
    )
    trips = catalog.create_table("raw.trips", rows.schema)
    for _ in range(3):
        trips.append(rows)
    for name in ("clean", "daily", "report"):
        catalog.create_table(f"curated.{name}", rows.schema)
    steps = [
        {"name": "load", "reads": ["file:trips.csv"], "output": "main.raw.trips"},
        {"name": "clean", "reads": ["main.raw.trips"], "output": "main.curated.clean"},
        {"name": "daily", "reads": ["main.curated.clean"], "output": "main.curated.daily"},
        {"name": "report", "reads": ["main.curated.clean", "main.curated.daily"], "output": "main.curated.report"},
    ]
    server.ask("PUT", f"{own}/pipelines/nyc", {"declaration": {"steps": steps}, "comment": "Trips of three cities"})
    server.ask("POST", f"{own}/pipelines/nyc/runs", {"id": RUN, "holder": "host:1", "steps": steps})
    for number, step in enumerate(steps):
        begin = 1_790_000_000_000 + number * 20_000
        finding = {
            "rule": "has_fare",
            "kind": "row",
            "action": "warn",
            "broken": number,
            "checked": 60,
            "held": number < 3,
        }
        server.ask(
            "PUT",
            f"{own}/runs/{RUN}/steps/{step['name']}",
            {
                "attempt": 1,
                "state": "done",
                "rows": 60 * (number + 1),
                "bytes": 5_000,
                "started_at": begin,
                "ended_at": begin + 25_000,
                "findings": [finding],
            },
        )
    server.ask("POST", f"{own}/runs/{RUN}/finish", {"attempt": 1, "state": "held", "message": "held for a look"})
    pairs = [
        ("raw.trips", "curated.clean"),
        ("curated.clean", "curated.daily"),
        ("curated.daily", "curated.report"),
        ("curated.clean", "curated.report"),
        ("curated.report", "raw.trips"),
    ]
    for number, (source, target) in enumerate(pairs):
        server.ask("POST", f"{own}/lineage", lineage_event(f"main.{source}", f"main.{target}", job=f"job {number}"))


def fill_files(server: LakeServer) -> None:
    """Add a fileset with files of each sort, and Lance tables with vectors, versions, a tag, a branch and indexes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lake = "/api/metalakes/lake"
    for body in (
        {"name": "files", "type": "fileset", "comment": "What the bureau sends", "properties": {}},
        {"name": "vectors", "type": "relational", "provider": "lakehouse-generic", "properties": {}},
    ):
        server.ask("POST", f"{lake}/catalogs", body)
    server.ask("POST", f"{lake}/catalogs/files/schemas", {"name": "raw"})
    comment = "Daily files of the three airports, as delivered"
    response = server.ask("POST", f"{lake}/catalogs/files/schemas/raw/filesets", {"name": "scans", "comment": comment})
    top = Path(str(response["fileset"]["storageLocation"]).removeprefix("file://"))
    for day in range(1, 4):
        (top / f"day=2026-11-0{day}/part").mkdir(parents=True)
        (top / f"day=2026-11-0{day}/part/flights.csv").write_text("flight,airport\n1,OSL\n")
    (top / "many").mkdir()
    for number in range(230):
        (top / f"many/scan-{number:04}.txt").write_text(f"scan {number}\n")
    rows = pa.table(
        {"id": range(400), "airport": ["OSL", "FCO", "TRN", None] * 100, "delay": [each / 7 for each in range(400)]}
    )
    pq.write_table(rows, top / "flights.parquet")
    (top / "airports.csv").write_text("code,name,runways\nOSL,Oslo Gardermoen,2\nFCO,<b>Roma</b> Fiumicino,4\n")
    events = [{"id": number, "kind": "landed", "gate": {"pier": "B", "number": number}} for number in range(3)]
    (top / "events.json").write_text(json.dumps(events))
    (top / "notes.txt").write_text("The bureau sends a file each night.\n\nColumns are described in the ledger.\n" * 3)
    (top / "scan.bin").write_bytes(bytes(range(256)) * 40)
    (top / "damaged.parquet").write_bytes(b"no parquet")
    (top / "<script>alert(1)<.txt").write_text("<script>alert(1)</script>\n")
    (top / os.fsdecode(b"caf\xe9.txt")).write_text("the name is Latin-1\n")
    (top / ("a very long name of a file " * 7 + ".csv")).write_text("a,b\n1,2\n")
    fill_vectors(server)


def fill_vectors(server: LakeServer) -> None:
    """Add the Lance tables."""
    import pyarrow as pa

    def stream(begin: int, count: int = 300) -> bytes:
        numbers = [
            [((row * 31 + place * 17) % 101) / 100 for place in range(64)] for row in range(begin, begin + count)
        ]
        fields = [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("text", pa.string(), metadata={"comment": "The passage, as the embedding model read it"}),
            pa.field("source", pa.struct([pa.field("page", pa.int32()), pa.field("tags", pa.list_(pa.string()))])),
            pa.field("embedding", pa.list_(pa.float32(), 64)),
            pa.field("image", pa.list_(pa.float32(), 8)),
        ]
        rows = pa.table(
            [
                range(begin, begin + count),
                [f"passage {row} about an airport" for row in range(begin, begin + count)],
                [{"page": row, "tags": ["osl", "night"]} for row in range(begin, begin + count)],
                numbers,
                [each[:8] for each in numbers],
            ],
            schema=pa.schema(fields),
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return bytes(sink.getvalue())

    table = "/lance/v1/table/vectors$rag$passages"
    server.ask("POST", "/lance/v1/namespace/vectors$rag/create", {"properties": {}})
    server.ask("POST", f"{table}/create?mode=create", stream(0))
    server.ask("POST", f"{table}/create_index", {"column": "id", "index_type": "BTREE", "name": "by_id"})
    index = {"column": "embedding", "index_type": "IVF_FLAT", "name": "nearest", "num_partitions": 2}
    server.ask("POST", f"{table}/create_index", {**index, "distance_type": "cosine"})
    server.ask("POST", f"{table}/tags/create", {"tag": "trained", "version": 2})
    server.ask("POST", f"{table}/branches/create", {"name": "experiment"})
    for begin in (300, 600):
        server.ask("POST", f"{table}/insert?mode=append", stream(begin, 20))
    server.ask("POST", "/lance/v1/table/vectors$rag$declared/declare", {})


def fill_others(server: LakeServer) -> None:
    """Add a view, a model, an empty namespace, and users with fewer rights than `ana`: `carl` and `guest`."""
    iceberg, lake = "/iceberg/v1/lake.main", "/api/metalakes/lake"
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["raw"],
        "representations": [{"type": "sql", "sql": "SELECT id, city FROM trips WHERE fare > 5", "dialect": "spark"}],
    }
    columns = [
        {"id": 1, "name": "id", "required": False, "type": "long", "doc": "number of the trip"},
        {"id": 2, "name": "city", "required": False, "type": "string"},
    ]
    schema = {"type": "struct", "schema-id": 0, "fields": columns}
    view = {"name": "dear", "schema": schema, "view-version": version, "properties": {"comment": "The dear trips"}}
    server.ask("POST", f"{iceberg}/namespaces/raw/views", view)
    server.ask("POST", f"{iceberg}/namespaces", {"namespace": ["empty"], "properties": {}})
    model = {"name": "ml", "type": "model", "provider": "model", "comment": "", "properties": {}}
    server.ask("POST", f"{lake}/catalogs", model)
    server.ask("POST", f"{lake}/catalogs/ml/schemas", {"name": "s", "comment": "", "properties": {}})
    server.ask(
        "POST", f"{lake}/catalogs/ml/schemas/s/models", {"name": "delay", "comment": "Guesses delays", "properties": {}}
    )
    link = {"uri": "s3://models/delay/0", "comment": "first", "properties": {}, "aliases": ["best"]}
    server.ask("POST", f"{lake}/catalogs/ml/schemas/s/models/delay/versions", link)
    for user in ("carl", "guest"):
        server.ask("POST", f"{lake}/users", {"name": user})
    privileges = [{"name": name, "condition": "allow"} for name in ("use_catalog", "use_schema")]
    objects = [{"fullName": "main", "type": "CATALOG", "privileges": privileges}]
    server.ask("POST", f"{lake}/roles", {"name": "visitors", "properties": {}, "securableObjects": objects})
    server.ask("PUT", f"{lake}/permissions/users/carl/grant", {"roleNames": ["visitors"]})


def lineage_event(source: str, target: str, *, job: str) -> dict[str, object]:
    """Return an event of OpenLineage about one edge."""
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-22T10:00:00Z",
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": RUN},
        "job": {"namespace": "nyc", "name": job},
        "inputs": [{"namespace": "limnos://lake", "name": source}],
        "outputs": [{"namespace": "limnos://lake", "name": target}],
    }


PAGES = {
    "home": "/console/",
    "catalog": "/console/o/catalog/lake/main",
    "namespace": "/console/o/namespace/lake/main/big",
    "table": "/console/o/table/lake/main/raw/nyc/flights",
    "wide": "/console/o/table/lake/main/raw/nyc/wide",
    "snapshots": "/console/o/table/lake/main/raw/nyc/flights?tab=snapshots",
    "preview": "/console/o/table/lake/main/raw/trips?tab=preview",
    "lineage": "/console/lineage/table/lake/main/curated/clean?depth=3",
    "pipelines": "/console/pipelines",
    "pipeline": "/console/pipeline?metalake=lake&name=nyc",
    "run": f"/console/run?metalake=lake&id={RUN}",
    "connect": "/console/o/table/lake/main/raw/nyc/flights?tab=connect",
    "nasty": "/console/o/table/lake/main/curated/%3Cscript%3Ealert%281%29%3C",
    "missing": "/console/o/table/lake/main/raw/nothing",
    "create-namespace": "/console/create-namespace/namespace/lake/main/raw",
    "rename": "/console/rename/table/lake/main/raw/nyc/flights",
    "sessions": "/console/sessions",
    "search": "/console/search?q=accounts",
    "audit": "/console/audit",
    "trash": "/console/trash?catalog=main",
    "maintenance": "/console/o/table/lake/main/raw/trips?tab=maintenance",
    "restrictions": "/console/restrictions/table/lake/main/raw/nyc/flights",
    "policies-of-namespace": "/console/o/namespace/lake/main/raw?tab=policies",
    "maintenance-catalog": "/console/maintenance?catalog=main",
    "compare": "/console/o/table/lake/main/raw/trips?tab=snapshots",
    "scans": "/console/o/table/lake/main/raw/trips?tab=scans",
    "access": "/console/access/table/lake/main/raw/nyc/flights?user=ana&action=table_load",
    "fileset": "/console/o/fileset/lake/files/raw/scans",
    "fileset-directory": "/console/o/fileset/lake/files/raw/scans?directory=day%3D2026-11-01",
    "fileset-page": "/console/o/fileset/lake/files/raw/scans?directory=many",
    "fileset-csv": "/console/o/fileset/lake/files/raw/scans?file=airports.csv",
    "fileset-parquet": "/console/o/fileset/lake/files/raw/scans?file=flights.parquet",
    "fileset-json": "/console/o/fileset/lake/files/raw/scans?file=events.json",
    "fileset-text": "/console/o/fileset/lake/files/raw/scans?file=notes.txt",
    "fileset-binary": "/console/o/fileset/lake/files/raw/scans?file=scan.bin",
    "fileset-damaged": "/console/o/fileset/lake/files/raw/scans?file=damaged.parquet",
    "fileset-nasty": "/console/o/fileset/lake/files/raw/scans?file=%3Cscript%3Ealert%281%29%3C.txt",
    "lance": "/console/o/table/lake/vectors/rag/passages",
    "lance-preview": "/console/o/table/lake/vectors/rag/passages?tab=preview",
    "lance-versions": "/console/o/table/lake/vectors/rag/passages?tab=versions",
    "lance-indexes": "/console/o/table/lake/vectors/rag/passages?tab=indexes",
    "lance-maintenance": "/console/o/table/lake/vectors/rag/passages?tab=maintenance",
    "lance-connect": "/console/o/table/lake/vectors/rag/passages?tab=connect",
    "lance-empty": "/console/o/table/lake/vectors/rag/declared",
    "access-catalog": "/console/access/catalog/lake/main?reach=ana",
    "nodes": "/console/nodes",
    "settings": "/console/settings",
    "accounts": "/console/accounts",
    "storage": "/console/storage",
    "worksheet": "/console/worksheet?text=SELECT+VALUE+t+FROM+raw.trips+AS+t+LIMIT+10%3B",
    "people": "/console/people",
    "user": "/console/people/user/lake/ana",
    "group": "/console/people/group/lake/staff",
    "account": "/console/people/user/lake/bot",
    "account-elsewhere": "/console/secrets/lake/robot",
    "roles": "/console/people?kind=role",
    "role": "/console/people/role/lake/readers",
    "assign": "/console/assign/user/lake/ana?change=unassign&role=readers",
    "tags": "/console/tags",
    "tag": "/console/tag/lake/pii",
    "policies": "/console/policies",
    "policy": "/console/policy/lake/tidy",
    "jobs": "/console/jobs",
    "operations": "/console/operations",
    "tokens": "/console/tokens",
    "secrets": "/console/secrets/lake/bot",
    "properties": "/console/o/table/lake/main/raw/nyc/flights?tab=properties",
    "metadata": "/console/o/table/lake/main/raw/nyc/flights?tab=metadata",
    "no-snapshots": "/console/o/table/lake/main/raw/nyc/flights?tab=preview",
    "no-lineage": "/console/lineage/table/lake/main/raw/nyc/flights",
    "namespace-empty": "/console/o/namespace/lake/main/empty",
    "namespace-properties": "/console/o/namespace/lake/main/raw?tab=properties",
    "access-namespace": "/console/access/namespace/lake/main/raw",
    "grant": (
        "/console/grant/table/lake/main/raw/nyc/flights?change=grant&role=readers&privileges=select_table&condition=allow"
    ),
    "drop": "/console/drop/table/lake/main/raw/trips",
    "drop-namespace": "/console/drop/namespace/lake/main/raw",
    "drop-user": "/console/people/drop/user/lake/ana",
    "view": "/console/o/view/lake/main/raw/dear",
    "model": "/console/o/model/lake/ml/s/delay",
    "groups": "/console/people?kind=group",
    "search-empty": "/console/search?q=",
    "search-none": "/console/search?q=zzyzx",
    "search-misspelt": "/console/search?q=flihgts",
    "audit-none": "/console/audit?user=nobody",
}
USER_PAGES = {
    "admin": tuple(PAGES),
    "ana": ("home", "namespace", "table", "people", "jobs", "restrictions"),
    "carl": ("home", "catalog", "namespace", "table", "access", "search", "audit", "tags", "drop", "trash"),
    "guest": (
        "home",
        "catalog",
        "table",
        "search",
        "pipelines",
        "people",
        "policies",
        "maintenance",
        "tokens",
        "worksheet",
        "operations",
        "storage",
        "missing",
        "lineage",
        "fileset",
    ),
    "stranger": ("home", "catalog", "search", "audit", "sessions", "worksheet"),
}
"""The pages that each user opens: `carl` may use namespaces and no table, `guest` has no privileges; `stranger` is not
a user.
"""


def launch(playwright: Playwright) -> Browser:
    """Start Chromium, from `LIMNOS_CHROMIUM` or the path, without requests of its own."""
    chromium_path = os.environ.get("LIMNOS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    arguments = [
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    return playwright.chromium.launch(executable_path=chromium_path, args=arguments, chromium_sandbox=os.geteuid() != 0)


def shoot(server: LakeServer, into: Path, *, only: str, widths: tuple[int, ...]) -> None:
    """Write the screenshots."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        for user, scheme, width in itertools.product(USER_PAGES, SCHEMES, widths):
            pages = [name for name in USER_PAGES[user] if not only or name in only.split(",")]
            if pages or (user == "admin" and only == "sign-in"):
                context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": HEIGHT})
                shoot_pages(context, server, into, user=user, pages=pages, suffix=f"{scheme}-{width}")
                context.close()
        browser.close()


def shoot_pages(
    context: BrowserContext, server: LakeServer, into: Path, *, user: str, pages: list[str], suffix: str
) -> None:
    """Write the screenshots of one user's pages; with those of the administrator also that of the sign-in page."""
    page = context.new_page()
    page.on("console", lambda message: print("console:", message.text))
    page.on("pageerror", lambda error: print("error:", error))
    page.goto(server.url + "/console/")
    if user == "admin":
        page.screenshot(path=into / f"sign-in-{suffix}.png")
    page.fill("#user", user)
    page.click("button.primary")
    width = int(suffix.split("-")[1])
    for name in pages:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.goto(server.url + PAGES[name])
        is_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        print(f"{user} {name} {suffix}{' SCROLLS SIDEWAYS' if is_wide else ''}", flush=True)
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(max(height, HEIGHT), HEIGHT_MAX)})
        page.screenshot(path=into / f"{user}-{name}-{suffix}.png")


def main() -> None:
    """Read the flags, and take the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("console-shots"))
    parser.add_argument("--only", default="", help="names of pages, separated by commas")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--readme", action="store_true", help="write the pictures of README.md into docs/images")
    flags = parser.parse_args()
    if flags.readme:
        from scripts import readme_pictures

        readme_pictures.shoot(Path(__file__).parents[1] / "docs" / "images")
        return
    flags.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        server = LakeServer(Path(data))
        try:
            fill(server)
            fill_runs(server)
            fill_files(server)
            fill_others(server)
            shoot(server, flags.into, only=flags.only, widths=tuple(map(int, flags.widths.split(","))))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
