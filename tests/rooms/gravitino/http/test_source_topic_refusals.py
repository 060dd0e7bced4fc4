# SPDX-License-Identifier: Apache-2.0
"""Access to topics of a cluster: a node over a real broker answers each request as the cell of source_topic_refusals.md
states.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import KafkaServer
from tests.http import refusal_tables
from tests.http.driver import API, DriverAnswer, DriverNode
from tests.http.refusal_tables import Row, cell
from tests.rooms.gravitino.http import source_topic_refusals
from tests.rooms.gravitino.http.source_topic_refusals import CALLERS

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]
WRITTEN = dict(refusal_tables.written(source_topic_refusals.TABLE, CALLERS))
Asked = dict[Row, dict[str, DriverAnswer]]
LISTED = {"uses", "creator", "consumer", "producer", "tabler", "topic_owner", "keeper", "owner", "laker"}
"""Callers who may list the topics of the schema."""
SEES = {"consumer", "producer", "topic_owner", "keeper", "owner", "laker"}
"""Callers who see other users' topics in that list."""


@pytest.fixture(scope="module")
def node(kafka_server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with all users and objects of the rows."""
    with source_topic_refusals.node_over(tmp_path_factory.mktemp("topic_refusals"), kafka_server) as running:
        source_topic_refusals.prepare(running)
        yield running


@pytest.fixture(scope="module")
def answers(node: DriverNode) -> Asked:
    """Return the answers to every row for every caller."""
    return refusal_tables.answers(node, source_topic_refusals.cases, CALLERS)


def test_table_has_exactly_the_requested_rows(answers: Asked) -> None:
    """The table has exactly the requested rows."""
    assert set(WRITTEN) == set(answers)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_table(answers: Asked, row: Row) -> None:
    """Every caller gets the status that the table states."""
    assert {who: cell(row[0], answers[row][who]) for who in CALLERS} == WRITTEN[row]


def test_list_has_only_loadable_topics(node: DriverNode, answers: Asked) -> None:
    """A user with the right to use the schema may list topics. The list has only topics that the user may load."""
    assert answers
    for who in CALLERS:
        user = None if who == "nobody" else who
        answer = node.ask("GET", f"{API}/lake/catalogs/bus/schemas/default/topics", user=user)
        names = [each["name"] for each in answer.json().get("identifiers", ())] if answer.status == 200 else []

        assert answer.status == (200 if who in LISTED else 403), who
        assert ("cells.t" in names) is (who in SEES), who


PAIRS = sorted((route, thing, f"no {thing}") for route, thing in WRITTEN if (route, f"no {thing}") in WRITTEN)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_refusal_does_not_reveal_existence(answers: Asked, pair: tuple[str, str, str]) -> None:
    """A caller who is refused an existing and a missing topic of the cluster gets the same message for both, except for
    the name.
    """
    route, existing, missing = pair
    for who in CALLERS:
        first, second = answers[route, existing][who], answers[route, missing][who]
        if first.status == second.status == 403:
            assert first["type"] == second["type"], who
