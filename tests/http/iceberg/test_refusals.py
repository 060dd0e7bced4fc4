# SPDX-License-Identifier: Apache-2.0
"""403 or 404: the cells of decision record 0006, and facts that a refusal must not reveal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg import refusals, wire
from tests.http.iceberg.refusals import CALLERS, Row

WRITTEN = dict(refusals.rows_written())


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[Row, DriverAnswer]]]:
    """Return the answers to every row for every caller, in the order of the rows, in which changes come after reads."""
    data: Path = tmp_path_factory.mktemp("refusals")
    with wire.node_over(data) as node:
        files = refusals.prepare(node)
        yield {
            who: {row: node.ask(*request, user=who) for row, request in refusals.requests(who, files).items()}
            for who in CALLERS
        }


def test_record_covers_every_route() -> None:
    """The record has exactly the protocol's routes, each with existing and missing objects."""
    assert {route for route, _ in WRITTEN} == refusals.routes()
    assert set(WRITTEN) == set(
        refusals.requests(
            "uses", dict.fromkeys([f"{age}_uses" for age in ("old", "older", "oldv")] + ["warehouse"], "/w")
        )
    )


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_record(responses: dict[str, dict[Row, DriverAnswer]], row: Row) -> None:
    """Every caller gets the status that the record states for the route and the object."""
    statuses = {who: responses[who][row].status for who in CALLERS}

    assert statuses == WRITTEN[row]


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_refusals_are_iceberg_errors(responses: dict[str, dict[Row, DriverAnswer]], row: Row) -> None:
    """Each refusal is an Iceberg error; a 403 has the user, or the missing privilege and its object."""
    refused = [responses[who][row] for who in CALLERS if responses[who][row].status in (403, 404, 409)]

    for answer in refused:
        if row[0].startswith("HEAD"):
            assert answer.body == b""
            continue
        status, kind, message = wire.error_of(answer)
        assert kind != "ForbiddenException" or status == 403
        assert len(message) > 10


PAIRS = [(route, thing, f"no {thing}") for route, thing in WRITTEN if (route, f"no {thing}") in WRITTEN]
SPELLED = {"gone": "there", "nowhere": "main", "nolake": "lake"}


def normalize_message(answer: DriverAnswer, who: str) -> str:
    """Return a refusal's message with names of missing objects replaced by those of existing ones."""
    message = wire.error_of(answer)[2]
    for missing, existing in {
        **SPELLED,
        f"drop_{who}": "t",
        f"leave_{who}": "t",
        f"rename_{who}": "t",
        f"empty_{who}": "there",
        f"dropv_{who}": "v",
        f"renamev_{who}": "v",
    }.items():
        message = message.replace(missing, existing)
    return re.sub(r"main\.there\.(there|v)", "main.there.t", message)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if "HEAD" not in pair[0] and "other" not in pair[1]], ids=str)
@pytest.mark.parametrize("who", ["stranger", "member", "uses"])
def test_refusal_does_not_reveal_existence(
    responses: dict[str, dict[Row, DriverAnswer]], pair: tuple[str, str, str], who: str
) -> None:
    """A caller who gets 403 for existing and missing objects gets the same message for both."""
    route, existing, missing = pair
    first, second = responses[who][route, existing], responses[who][route, missing]

    if first.status == second.status == 403 and existing != "catalog":
        assert normalize_message(first, who) == normalize_message(second, who)
    else:
        assert {first.status, second.status} <= {200, 403, 404}


def test_missing_privilege_is_named(responses: dict[str, dict[Row, DriverAnswer]]) -> None:
    """A member who lacks one privilege gets its name and the object in the refusal."""
    table = "GET /{prefix}/namespaces/{namespace}/tables/{table}"

    message = wire.error_of(responses["uses"][table, "table"])[2]

    assert "SELECT_TABLE" in message
    assert "there" in message


def test_disabled_user_is_refused_everywhere(node: DriverNode) -> None:
    """Every route except the configuration refuses a disabled user with 403 and the reason."""
    files = refusals.prepare(node)
    node.done("PATCH", "/api/limnos/v1/metalakes/lake/users/owner", {"enabled": False})

    answers = {row: node.ask(*request, user="owner") for row, request in refusals.requests("owner", files).items()}

    for row, answer in answers.items():
        if row == (refusals.CONFIG, "no metalake"):
            assert answer.status == 404
        else:
            assert answer.status == 403, row
            assert (
                row[0].startswith("HEAD") or "disabled" in answer.body.decode() or "nolake" in answer.body.decode()
            ), row
