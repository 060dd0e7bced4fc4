# SPDX-License-Identifier: Apache-2.0
"""Values that connectors return: odd names are left out of lists, and values of another shape are errors of the
source.
"""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from limnos.model.errors import SourceFailed
from limnos.services.federation.connector_values import listable_names, schema_of, table_of, topic_of
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo, SourceTopicInfo

ID = {"name": "id", "type": "long"}
TABLE = SourceTableInfo(comment="c", columns=[ID], indexes=[], properties={"format": "delta"}, layout={})


def test_unusable_names_are_left_out_of_a_list() -> None:
    """A list has each name once, without empty names, relative steps, half characters and names that are too long; one
    line of the log has their number.
    """
    with capture_logs() as lines:
        names = listable_names(["a", "..", "a", "", "b\udc80", "é", "x" * 300, "c d"], catalog="d")
        plain = listable_names(["b", "a"], catalog="d")

    assert names == ["a", "é", "c d"]
    assert plain == ["b", "a"]
    assert [(line["catalog"], line["count"], line["first"]) for line in lines] == [("d", 4, "'..'")]


@pytest.mark.parametrize(
    "value,words",
    [(None, "a value of type NoneType"), (7, "a value of type int"), (["a", 1], "a list with a value of type int")],
)
def test_a_value_that_is_no_list_of_names_is_an_error_of_the_source(value: object, words: str) -> None:
    """The error names the catalog and the type of the value."""
    with pytest.raises(SourceFailed, match=f"Catalog d: its connector returns {words}"):
        listable_names(value, catalog="d")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"columns": []},
        SourceSchemaInfo(None, {}),
        TABLE._replace(comment=1),
        TABLE._replace(columns=None),
        TABLE._replace(columns=["id"]),
        TABLE._replace(columns=[{"name": "id", "type": object()}]),
        TABLE._replace(indexes=None),
        TABLE._replace(properties={"files": 7}),
        TABLE._replace(properties=None),
        TABLE._replace(layout=[]),
    ],
)
def test_a_table_of_another_shape_is_an_error_of_the_source(value: object) -> None:
    """Each part of a table is checked, because clients get it as JSON."""
    with pytest.raises(SourceFailed, match="its makers must mend it"):
        table_of(value)


@pytest.mark.parametrize("value", [None, {}, SourceSchemaInfo(None, {"a": 1}), SourceSchemaInfo(b"", {})])  # type: ignore[dict-item,arg-type]
def test_a_schema_of_another_shape_is_an_error_of_the_source(value: object) -> None:
    """Comment and properties are texts."""
    with pytest.raises(SourceFailed, match="its makers must mend it"):
        schema_of(value)


@pytest.mark.parametrize("value", [None, {}, SourceTopicInfo({"a": 1})])  # type: ignore[dict-item]
def test_a_topic_of_another_shape_is_an_error_of_the_source(value: object) -> None:
    """Properties are texts."""
    with pytest.raises(SourceFailed, match="its makers must mend it"):
        topic_of(value)


def test_values_of_the_right_shape_are_returned_as_they_are() -> None:
    """A table, a schema and a topic stay the same."""
    schema, topic = SourceSchemaInfo(None, {}), SourceTopicInfo({})

    assert (table_of(TABLE), schema_of(schema), topic_of(topic)) == (TABLE, schema, topic)
