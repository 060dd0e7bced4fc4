# SPDX-License-Identifier: Apache-2.0
"""A running server with the objects of the generated requests, and the five callers.

Objects that a case drops or renames are created again before the next operation. May import the tests' server starter.
Knows no document.
"""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import requests

from tests.arrow_rows import arrow
from tests.http.iceberg import wire
from tests.http.test_coverage import FUNCTION, OBJECTS, POLICY, PROGRAM, RUN
from tests.integration.live import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

API = "/api/metalakes"
OWN = "/api/limnos/v1/metalakes"
READS = ("use_catalog", "use_schema", "select_table")

BOUNDED = "[lance]\ndata_timeout_s = 60\n[sqlpp]\ntimeout_s = 60\n"
"""Settings that shorten long requests to the time of one that waits for changes, so that a missing answer is a
fault.
"""
GIVEN = {"name": "owner", "type": "USER"}
Request = tuple[str, str, object]


def _catalog(name: str, kind: str, provider: str | None) -> Request:
    return "POST", f"{API}/lake/catalogs", {"name": name, "type": kind, "provider": provider}


def _leaves(catalog: str) -> str:
    return f"{API}/lake/catalogs/{catalog}/schemas/a"


THINGS: tuple[Request, ...] = (
    ("POST", API, {"name": "lake"}),
    ("PATCH", f"{API}/lake", {"inUse": True}),
    *(("POST", f"{API}/lake/users", {"name": name}) for name in ("owner", "reader", "stranger", "ana")),
    ("POST", f"{API}/lake/groups", {"name": "crew"}),
    _catalog("main", "RELATIONAL", "lakehouse-iceberg"),
    _catalog("lance", "RELATIONAL", "lakehouse-generic"),
    _catalog("models", "MODEL", None),
    _catalog("files", "FILESET", None),
    _catalog("topics", "MESSAGING", None),
    ("PATCH", f"{API}/lake/catalogs/main", {"inUse": True}),
    ("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["a"]}),
    ("POST", "/iceberg/v1/lake.main/namespaces/a/tables", {"name": "t", "schema": wire.SCHEMA}),
    ("POST", "/iceberg/v1/lake.main/namespaces/a/views", wire.view_body("v")),
    ("POST", "/lance/v1/namespace/lance$a/create", {}),
    ("POST", "/lance/v1/table/lance$a$t/create", arrow()),
    ("POST", f"{API}/lake/tags", {"name": "red"}),
    ("POST", f"{API}/lake/objects/SCHEMA/main.a/tags", {"tagsToAdd": ["red"]}),
    ("POST", f"{API}/lake/policies", {"name": "keep", **POLICY}),
    ("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": "nyc"}}),
    ("PUT", f"{OWN}/lake/pipelines/flights", {"declaration": {}}),
    ("POST", f"{OWN}/lake/pipelines/flights/runs", {"id": RUN, "holder": "h:1"}),
    ("POST", f"{_leaves('main')}/functions", {"name": "f", **FUNCTION}),
    *(("POST", f"{API}/lake/catalogs/{name}/schemas", {"name": "a"}) for name in ("models", "files", "topics")),
    ("POST", f"{_leaves('models')}/models", {"name": "churn"}),
    ("POST", f"{_leaves('models')}/models/churn/versions", {"uri": "s3://x", "aliases": ["new"]}),
    ("POST", f"{_leaves('files')}/filesets", {"name": "f"}),
    ("POST", f"{_leaves('topics')}/topics", {"name": "o"}),
    ("POST", f"{API}/lake/roles", {"name": "hands", "properties": {}, "securableObjects": OBJECTS}),
    (
        "POST",
        f"{API}/lake/roles",
        {
            "name": "readers",
            "properties": {},
            "securableObjects": [
                {
                    "fullName": "main",
                    "type": "CATALOG",
                    "privileges": [{"name": name, "condition": "allow"} for name in READS],
                },
            ],
        },
    ),
    ("PUT", f"{API}/lake/permissions/users/reader/grant", {"roleNames": ["readers"]}),
    *(("PUT", f"{API}/lake/owners/CATALOG/{name}", GIVEN) for name in ("main", "lance", "models", "files", "topics")),
    ("PUT", f"{API}/lake/owners/METALAKE/lake", GIVEN),
)
"""In order of creation; the owner of the metalake is changed last."""


class Caller(NamedTuple):
    """A caller: the name in the report, and its credentials, which are used in turn."""

    name: str
    credentials: tuple[str | None, ...]


def believed(user: str) -> str:
    """Return the header of an unverified user."""
    return "Basic " + base64.b64encode(f"{user}:x".encode()).decode()


CALLERS = (
    Caller("admin", (believed("admin"),)),
    Caller("owner", (believed("owner"),)),
    Caller("reader", (believed("reader"),)),
    Caller("stranger", (believed("stranger"),)),
    Caller("nobody", (None, None, "Bearer lim_1_wrong", "Bearer eyJhbGciOiJub25lIn0.e30.", "Basic !")),
)
"""A service admin, the metalake's owner, a reader with one grant, a user without rights, and no credential or a
wrong one.
"""


class World:
    """The server under test."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._session = requests.Session()

    def mend(self) -> None:
        """Create missing objects: by the owner, or by the admin, who owns them until the owner is changed."""
        for thing in THINGS:
            if self.status("owner", *thing) in (401, 403, 404):
                self.status("admin", *thing)

    def status(self, user: str, method: str, path: str, body: object = None) -> int:
        """Send a request; returns the status."""
        arrow_body = isinstance(body, bytes)
        kind = "application/vnd.apache.arrow.stream" if arrow_body else "application/json"
        headers = {"authorization": believed(user), "content-type": kind}
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self._session.request(method, self.uri + path, data=data, headers=headers, timeout=60).status_code


@contextmanager
def world_at(folder: Path) -> Iterator[World]:
    """Start a server over an empty store, and create all objects."""
    settings = folder / "limnos.toml"
    settings.write_text(BOUNDED)
    with serving(folder / "data", "--config", str(settings)) as server:
        world = World(server.uri)
        world.mend()
        yield world
