# SPDX-License-Identifier: Apache-2.0
"""Routes without a prefix read the default catalog and refuse changes."""

from __future__ import annotations

import pytest

from limnos.http.iceberg.protocol import CATALOG_ROUTES
from limnos.http.routing import Route
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import (
    SCHEMA,
    error_of,
    make_table,
    make_view,
    nothing_done,
    set_properties,
    space_path,
    table_path,
)

BARE = "/iceberg/v1"
BODIES: dict[str, object] = {
    "create-namespace": {"namespace": ["new"]},
    "update-properties": {"updates": {"k": "v"}},
    "register-table": {"name": "n", "metadata-location": "file:///x"},
    "create-table": {"name": "n", "schema": SCHEMA},
    "commit-table": {"updates": [set_properties(k="v")]},
    "report-metrics": {},
    "sign-request": {"region": "r", "uri": "u", "method": "GET", "headers": {}},
    "rename-table": {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "n"}},
    "commit-transaction": {"table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}}]},
}
CHANGES = [route for route in CATALOG_ROUTES if route.method not in ("GET", "HEAD")]


def bare(path: str, space: str = "a") -> str:
    """Return a route's path without its prefix, for the table `t` and the view `v`."""
    filled = path.replace("{namespace}", space).replace("{table}", "t").replace("{view}", "v").removeprefix("/{prefix}")
    return f"{BARE}{filled}"


@pytest.mark.parametrize("change", CHANGES, ids=lambda route: route.operation)
def test_changes_are_refused(node: DriverNode, change: Route[object]) -> None:
    """Each changing route without a prefix is refused with 400 and the prefix to use, also for owners, and changes
    nothing.
    """
    make_table(node, "a", "t")
    node.done("POST", f"{BARE}/lake.main/namespaces", {"namespace": ["empty"]})
    space = "empty" if change.operation == "drop-namespace" else "a"

    with nothing_done(node):
        answer = node.ask(change.method, bare(change.path, space), BODIES.get(change.operation))

    status, kind, message = error_of(answer)
    assert (status, kind) == (400, "IllegalArgumentException")
    assert "/v1/config?warehouse=" in message
    assert "for catalog main it is lake.main" in message


def test_drop_without_prefix_keeps_table_in_default_catalog(node: DriverNode) -> None:
    """A request without a prefix, from a client of another catalog, drops no table of that name in the default
    catalog.
    """
    node.done("POST", f"{API}/lake/catalogs", {"name": "other", "type": "RELATIONAL", "provider": "lakehouse-iceberg"})
    make_table(node, "a", "t")
    node.done("POST", f"{BARE}/lake.other/namespaces", {"namespace": ["a"]})
    node.done("POST", f"{space_path('a', root=f'{BARE}/lake.other')}/tables", {"name": "t", "schema": SCHEMA})

    answer = node.delete(f"{BARE}/namespaces/a/tables/t?purgeRequested=true")

    assert answer.status == 400
    assert node.get(table_path("a", "t")).status == 200
    assert node.get(table_path("a", "t", root=f"{BARE}/lake.other")).status == 200


@pytest.mark.parametrize("user", ["stranger", "member", None])
def test_refusal_hides_default_catalog_from_users_without_access(node: DriverNode, user: str | None) -> None:
    """The refusal has the default catalog's prefix only for users of that catalog."""
    make_table(node, "a", "t")
    node.done("POST", f"{API}/lake/users", {"name": "member"})
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")

    hidden = node.ask("DELETE", f"{BARE}/namespaces/a/tables/t", user=user)
    refusal = node.ask("DELETE", f"{BARE}/namespaces/a/tables/t", user="ana")

    assert "lake.main" not in hidden.body.decode()
    assert hidden.status in (400, 401)
    assert "lake.main" in error_of(refusal)[2]


def test_reads_without_prefix_use_the_default_catalog(node: DriverNode) -> None:
    """Reads without a prefix return the same as reads with the default catalog's prefix."""
    make_table(node, "a", "t")
    make_view(node, "a", "v")
    reads = [route for route in CATALOG_ROUTES if route.method in ("GET", "HEAD") and route.operation != "load-plan"]

    for route in reads:
        plain = node.ask(route.method, bare(route.path))
        full = node.ask(route.method, bare(route.path).replace(BARE, f"{BARE}/lake.main"))
        assert plain.status == full.status < 300
        assert plain.body == full.body
    assert len(reads) == 10
