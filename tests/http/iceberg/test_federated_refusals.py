# SPDX-License-Identifier: Apache-2.0
"""Access in a connector catalog of another Iceberg catalog: the cells of decision record 0006, except for the
differences that are listed here.

In decision record 0006 the callers send the requests to a native catalog; here they send the same requests to a
connector catalog of such a catalog on another server. First the tree's handler decides about a request, then the
handler that asks the source decides again, because rights may change between the two. Each request is therefore sent
twice: through both handlers, and directly to the second one, whose errors the first one would hide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from limnos.http.iceberg import protocol
from limnos.http.iceberg.federated import HANDLERS, serve_federated
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import refusals, wire
from tests.http.iceberg.federated import far_at
from tests.http.iceberg.refusals import CALLERS, Row, own

if TYPE_CHECKING:
    from pathlib import Path

    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.http.route_targets import Handler
    from limnos.http.routing import Route
    from limnos.services.request.context import Context

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]
WRITTEN = dict(refusals.rows_written())
NOT_SERVED = ("/plan", "/plan/{plan}", "/tasks", "/sign")


def _far_url(text: str) -> str:
    """Return the URL of the same object in the catalog that shows it."""
    return text.replace("/lake.main/", "/lake.far/").replace("warehouse=main", "warehouse=far")


def _second_alone(route: Route[Handler]) -> Route[Handler]:
    """Return the route with requests for the connector catalog sent directly to the handler that asks the source."""
    both, source_handler = serve_federated(route), HANDLERS.get(route.operation)
    if source_handler is None:
        return both

    async def handle(request: Request, ctx: Context) -> Response:
        return await (source_handler if request.params[0] == b"lake.far" else both.handler)(request, ctx)

    return both._replace(handler=handle)


@pytest.fixture(scope="module", params=("both", "second alone"))
def responses(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[Row, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    away, near = (tmp_path_factory.mktemp(name) for name in ("away", "near"))
    with wire.node_over(away) as source:
        files = refusals.prepare(source)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "second alone":
            patch.setattr(protocol, "serve_federated", _second_alone)
        yield _answers(near, away, files)


def _answers(near: Path, away: Path, files: dict[str, object]) -> dict[str, dict[Row, DriverAnswer]]:
    with far_at(near, away, timeout_s=60.0) as far:
        _grant(far.node)
        return {
            who: {
                row: far.node.ask(method, _far_url(path), body, user=who)
                for row, (method, path, body) in refusals.requests(who, files).items()
            }
            for who in CALLERS
        }


def _grant(node: DriverNode) -> None:
    """Grant all rights of the rows; the objects exist in the source."""
    for who, privileges in CALLERS.items():
        if privileges is not None:
            node.done("POST", f"{API}/lake/users", {"name": who})
        if privileges:
            grant(node, who, privileges, kind="CATALOG", on="far")
    for space in ("there", "other", "empty_holder"):
        own(node, "holder", "SCHEMA", f"far.{space}")
    own(node, "holder", "TABLE", "far.there.owned")
    own(node, "owner", "CATALOG", "far")


METRICS = ("POST /{prefix}/namespaces/{namespace}/tables/{table}/metrics", "table")


def _is_as_written(row: Row, *, native: int, here: int) -> bool:
    """Return whether a cell equals that of a native catalog, or reveals less.

    Only the source knows missing objects, and the server asks it only for callers who have the privilege for the
    operation, or who may create tables in the namespace. Others get 403. Reports of a table are accepted only from
    callers who may load it. Scan planning and request signing are not served: callers who may use the catalog get this
    answer whether or not the object exists.
    """
    if row[0].endswith(NOT_SERVED):
        return here in (native, 406) and here >= 400
    return native == here or (here == 403 and (native == 404 or row == METRICS))


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_record_or_a_stricter_one(
    responses: dict[str, dict[Row, DriverAnswer]], row: Row
) -> None:
    """Every caller gets the status that the record states for native catalogs, or a less revealing one."""
    statuses = {who: (WRITTEN[row][who], responses[who][row].status) for who in CALLERS}

    assert {who: pair for who, pair in statuses.items() if not _is_as_written(row, native=pair[0], here=pair[1])} == {}


PAIRS = sorted((route, thing, f"no {thing}") for route, thing in WRITTEN if (route, f"no {thing}") in WRITTEN)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_refusal_does_not_reveal_existence(
    responses: dict[str, dict[Row, DriverAnswer]], pair: tuple[str, str, str]
) -> None:
    """A caller who is refused both an existing and a missing object of the source gets the same message for both,
    except for names.
    """
    route, existing, missing = pair
    for who in CALLERS:
        first, second = responses[who][route, existing], responses[who][route, missing]
        if first.status == second.status == 403 and first.body:
            assert wire.error_of(first)[:2] == wire.error_of(second)[:2], who


def test_second_decision_about_credentials_needs_use_schema(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The handler that asks the source refuses credentials to a caller who lacks USE_SCHEMA, as it refuses the table.

    A caller without USE_CATALOG is refused before, because the endpoints of the source are read by that right.
    """
    away, near = (tmp_path_factory.mktemp(name) for name in ("away", "near"))
    with wire.node_over(away) as source:
        wire.make_space(source, "there")
        wire.make_table(source, "there", "t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "serve_federated", _second_alone)
        with far_at(near, away, timeout_s=60.0) as far:
            grant(far.node, "spaceless", "use_catalog select_table", kind="CATALOG", on="far")
            path = _far_url(wire.table_path("there", "t"))
            statuses = [far.node.get(f"{path}{end}", user="spaceless").status for end in ("", "/credentials")]

    assert statuses == [403, 403]
