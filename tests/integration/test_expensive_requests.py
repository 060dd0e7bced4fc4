# SPDX-License-Identifier: Apache-2.0
"""No request below 1 MB, of any caller, delays others: a catalog of expensive bodies.

The tests measure the CPU time of the server's process while another caller waits for `/health/live`, because wall time
depends on the machine's load.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.live import LiveServer, serving

pytestmark = pytest.mark.integration

CPU_S_MAX = 1.0
"""A slow machine takes 0.4 seconds for the dearest of them; a request that blocks all others takes several."""
BYTES_MAX = 1_000_000
ICEBERG = "/iceberg/v1/lake.main"
SPACES = f"{ICEBERG}/namespaces"
TABLES = f"{SPACES}/a/tables"
TABLE = f"{TABLES}/t"
LAKE = "/api/metalakes/lake"
OWN = "/api/limnos/v1/metalakes/lake"
FIELD = {"id": 1, "name": "c", "required": False, "type": "long"}
SCHEMA = {"type": "struct", "fields": [FIELD]}


def many(count: int, one: str) -> str:
    """Repeat a JSON text, numbered at each `#`, up to the maximum size."""
    fit = min(count, (BYTES_MAX - 2_000) // (len(one) + 1 + 5 * one.count("#")))
    return ",".join(one.replace("#", str(number)) for number in range(1, fit + 1))


def updates(*texts: str) -> str:
    """Return the body of a commit."""
    return f'{{"requirements":[],"updates":[{",".join(texts)}]}}'


def create(schema: str, more: str = "") -> str:
    """Return the body of a create."""
    return f'{{"name":"n","schema":{schema}{more}}}'


def nested(depth: int, kind: str = "struct") -> str:
    """Return a schema of the given depth."""
    inner = '"long"'
    for number in range(depth):
        if kind == "list":
            inner = f'{{"type":"list","element-id":{number + 2},"element-required":false,"element":{inner}}}'
        else:
            field = f'{{"id":{number + 2},"name":"s","required":false,"type":{inner}}}'
            inner = f'{{"type":"struct","fields":[{field}]}}'
    return f'{{"type":"struct","fields":[{{"id":1,"name":"s","required":false,"type":{inner}}}]}}'


ADD_SCHEMA = (
    '{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"c#","required":false,"type":"long"}]}}'
)
ADD_SPEC = '{"action":"add-spec","spec":{"fields":[{"source-id":1,"name":"p#","transform":"bucket[#]"}]}}'
ADD_ORDER = (
    '{"action":"add-sort-order","sort-order":{"order-id":1,"fields":'
    '[{"source-id":1,"transform":"bucket[#]","direction":"asc","null-order":"nulls-first"}]}}'
)
SNAPSHOT = (
    '{"action":"add-snapshot","snapshot":{"snapshot-id":#,"sequence-number":#,"timestamp-ms":1700000000000,'
    '"manifest-list":"%s","summary":{"operation":"append"}}}'
)
OWN_PLACE = "OWN-PLACE"
"""Stands in a body for the location of the table."""
WIDE = '{"type":"struct","fields":[' + many(20_000, '{"id":#,"name":"c#","required":false,"type":"long"}') + "]}"
LONG = "x" * 400_000
BLANKS = "geography(" + " " * 240

BODIES: dict[str, tuple[str, str, str]] = {
    "updates: deep": ("POST", TABLE, updates("[" * 400_000 + "]" * 400_000)),
    "updates: empty lists": ("POST", TABLE, updates(many(400_000, "[]"))),
    "unknown field: empty lists": ("POST", TABLE, f'{{"x":[{many(400_000, "[]")}]}}'),
    "updates: empty objects": ("POST", TABLE, updates(many(400_000, "{}"))),
    "add-schema": ("POST", TABLE, updates(many(20_000, ADD_SCHEMA))),
    "add-schema, small body": ("POST", TABLE, updates(many(400, ADD_SCHEMA))),
    "add-spec": ("POST", TABLE, updates(many(20_000, ADD_SPEC))),
    "add-spec, small body": ("POST", TABLE, updates(many(600, ADD_SPEC))),
    "add-sort-order": ("POST", TABLE, updates(many(20_000, ADD_ORDER))),
    "add-snapshot": ("POST", TABLE, updates(many(3_500, SNAPSHOT % f"{OWN_PLACE}/x"))),
    "add-snapshot, lists elsewhere": ("POST", TABLE, updates(many(20_000, SNAPSHOT % "file:///x"))),
    "remove-properties": (
        "POST",
        TABLE,
        updates(f'{{"action":"remove-properties","removals":[{many(200_000, chr(34) + "#" + chr(34))}]}}'),
    ),
    "set-properties": ("POST", TABLE, updates(many(20_000, '{"action":"set-properties","updates":{"k#":"v"}}'))),
    "requirements": (
        "POST",
        TABLE,
        (
            f'{{"requirements":[{many(10_000, json.dumps({"type": "assert-ref-snapshot-id", "ref": "b#", "snapshot-id": None}))}],"updates":[]}}'
        ),
    ),
    "slashes": ("POST", TABLE, updates(f'{{"action":"set-location","location":"file:///x{"/" * 900_000}"}}')),
    "segments": ("POST", TABLE, updates(f'{{"action":"set-location","location":"file:///x{"/y" * 400_000}"}}')),
    "big numbers": ("POST", TABLE, updates(many(230, "9" * 4_000))),
    "escapes": ("POST", TABLE, updates(f'{{"action":"{"%se9" % (chr(92) + "u00") * 150_000}"}}')),
    "wide schema": ("POST", TABLES, create(WIDE)),
    "deep schema": ("POST", TABLES, create(nested(5_000))),
    "deepest schema": ("POST", TABLES, create(nested(98))),
    "deepest lists": ("POST", TABLES, create(nested(98, "list"))),
    "long nested names": (
        "POST",
        TABLES,
        create(
            f'{{"type":"struct","fields":[{{"id":1,"name":"{LONG}","required":true,"type":{WIDE[:300_000].rpartition(",{")[0]}]}}}}]}}'
        ),
    ),
    "identifier fields": ("POST", TABLES, create(json.dumps({**SCHEMA, "identifier-field-ids": [1] * 200_000}))),
    "new columns": (
        "POST",
        TABLES,
        create(WIDE[:800_000].rpartition(",{")[0].replace('"long"', '"timestamp_ns"') + "]}"),
    ),
    "blanks in a type": ("POST", TABLES, create(json.dumps({"type": "struct", "fields": [{**FIELD, "type": BLANKS}]}))),
    "properties of a table": (
        "POST",
        TABLES,
        create(json.dumps(SCHEMA), ',"properties":{' + many(60_000, '"k#":"v"') + "}"),
    ),
    "location of slashes": ("POST", TABLES, create(json.dumps(SCHEMA), f',"location":"file:///x{"/" * 900_000}"')),
    "location of dots": ("POST", TABLES, create(json.dumps(SCHEMA), f',"location":"file:///x{"/.." * 60_000}"')),
    "levels": ("POST", SPACES, f'{{"namespace":[{many(300_000, chr(34) + "a" + chr(34))}]}}'),
    "long level": ("POST", SPACES, json.dumps({"namespace": ["x" * 900_000]})),
    "properties of a namespace": (
        "POST",
        SPACES,
        '{"namespace":["p"],"properties":{' + many(60_000, '"k#":"v"') + "}}",
    ),
    "removals": ("POST", f"{SPACES}/a/properties", f'{{"removals":[{many(200_000, chr(34) + "#" + chr(34))}]}}'),
    "metrics": ("POST", f"{TABLE}/metrics", f'{{"x":[{many(400_000, "[]")}]}}'),
    "rename": (
        "POST",
        f"{ICEBERG}/tables/rename",
        (
            f'{{"source":{{"namespace":[{many(200_000, chr(34) + "a" + chr(34))}],"name":"t"}},"destination":{{"namespace":["a"],"name":"u"}}}}'
        ),
    ),
    "register": (
        "POST",
        f"{SPACES}/a/register",
        json.dumps({"name": "r", "metadata-location": "file:///" + "a/" * 400_000}),
    ),
    "role of many objects": (
        "POST",
        f"{LAKE}/roles",
        (
            f'{{"name":"r","properties":{{}},"securableObjects":[{many(9_000, json.dumps({"fullName": "main.x#", "type": "SCHEMA", "privileges": [{"name": "use_schema", "condition": "allow"}]}))}]}}'
        ),
    ),
    "role of long names": (
        "POST",
        f"{LAKE}/roles",
        json.dumps(
            {
                "name": "r",
                "properties": {},
                "securableObjects": [{"fullName": "main." + "a." * 400_000, "type": "SCHEMA", "privileges": []}],
            }
        ),
    ),
    "grant of many roles": (
        "PUT",
        f"{LAKE}/permissions/users/admin/grant",
        f'{{"roleNames":[{many(100_000, chr(34) + "r#" + chr(34))}]}}',
    ),
    "schema of many parts": (
        "POST",
        f"{LAKE}/catalogs/main/schemas",
        json.dumps({"name": "a:" * 400_000 + "a", "comment": "", "properties": {}}),
    ),
    "changes of a schema": (
        "PUT",
        f"{LAKE}/catalogs/main/schemas/a",
        f'{{"updates":[{many(20_000, json.dumps({"@type": "setProperty", "property": "k#", "value": "v"}))}]}}',
    ),
    "changes of a metalake": (
        "PUT",
        LAKE,
        f'{{"updates":[{many(20_000, json.dumps({"@type": "setProperty", "property": "k#", "value": "v"}))}]}}',
    ),
    "catalog of many properties": (
        "POST",
        f"{LAKE}/catalogs",
        json.dumps(
            {
                "name": "c",
                "type": "RELATIONAL",
                "provider": "lakehouse-iceberg",
                "comment": "",
                "properties": {f"k{n}": "v" for n in range(50_000)},
            }
        ),
    ),
    "long user": ("POST", f"{LAKE}/users", json.dumps({"name": "u" * 900_000})),
    "members": ("POST", f"{OWN}/groups/g/members", f'{{"users":[{many(100_000, chr(34) + "u#" + chr(34))}]}}'),
    "explain": ("POST", f"{OWN}/access/explain", json.dumps({"action": "table_load", "path": ["a"] * 190_000})),
    "move": ("POST", f"{OWN}/catalogs/main/move", json.dumps({"source": ["a"] * 95_000, "target": ["b"] * 95_000})),
    "lists where objects belong": ("POST", f"{LAKE}/users", f"[{many(400_000, '[]')}]"),
    "query": ("GET", f"{SPACES}?" + "a=1&" * 15_000, ""),
    "escaped path": ("GET", f"{SPACES}/" + "%61" * 20_000, ""),
    "levels in a path": ("GET", f"{SPACES}/" + "a%1F" * 15_000, ""),
    "page token": ("GET", f"{SPACES}?pageSize=10&pageToken=" + "A" * 60_000, ""),
}
"""Method, path and body of each request."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a table, a group and unverified Basic users: `admin` may do everything, `nobody` nothing."""
    with serving(tmp_path_factory.mktemp("nasty") / "data") as running:
        for path, body in (
            (SPACES, {"namespace": ["a"]}),
            (TABLES, {"name": "t", "schema": SCHEMA}),
            (f"{LAKE}/groups", {"name": "g"}),
            (f"{LAKE}/users", {"name": "admin"}),
        ):
            assert ask(running, "POST", path, json.dumps(body), user="admin") in (200, 409), path
        yield running


@pytest.fixture(scope="module")
def place(node: LiveServer) -> str:
    """The location of the table."""
    request = urllib.request.Request(node.uri + TABLE, headers={"authorization": f"Bearer {node.token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["metadata"]["location"])


def ask(node: LiveServer, method: str, path: str, body: str, *, user: str) -> int:
    """Send one request on its own connection; returns 0 if the server closed it without an answer."""
    parts = urlsplit(node.uri)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    credential = base64.b64encode(f"{user}:x".encode()).decode()
    headers = {"authorization": f"Basic {credential}", "content-type": "application/json"}
    try:
        connection.request(method, path, body.encode() or None, headers)
        answer = connection.getresponse()
        answer.read()
    except (ConnectionError, http.client.RemoteDisconnected):
        return 0
    finally:
        connection.close()
    return answer.status


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, of all its threads."""
    ran = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            ran += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:  # the thread has just ended
            continue
    return ran / 1e9


def dearest(node: LiveServer, asking: threading.Thread) -> float:
    """Send health checks while a request runs. Returns the maximum CPU time that the server used between request and
    answer of one check.
    """
    parts = urlsplit(node.uri)
    health = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    most, over = 0.0, False
    health.connect()
    asking.start()
    while not over:
        over = not asking.is_alive()  # one more after the end
        before = cpu_s(node.pid)
        health.request("GET", "/health/live")
        assert health.getresponse().read()
        most = max(most, cpu_s(node.pid) - before)
    health.close()
    return most


@pytest.mark.parametrize("user", ["nobody", "admin"])
@pytest.mark.parametrize("name", BODIES)
def test_expensive_request_does_not_block_health_checks(node: LiveServer, place: str, name: str, user: str) -> None:
    """During each expensive request, of callers with and without rights, health checks are answered after little CPU
    time, and the request causes no 500.
    """
    method, path, body = BODIES[name]
    body = body.replace(OWN_PLACE, place)
    assert len(body) <= BYTES_MAX
    statuses: list[int] = []
    asking = threading.Thread(target=lambda: statuses.append(ask(node, method, path, body, user=user)))

    most = dearest(node, asking)

    assert statuses
    assert statuses[0] < 500
    assert most < CPU_S_MAX
