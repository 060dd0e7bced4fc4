# SPDX-License-Identifier: Apache-2.0
"""All TPC-H queries are translated completely."""

from __future__ import annotations

import pytest

from conformance.sqlpp_tpch.queries import QUERIES
from conformance.sqlpp_tpch.tables import TYPES
from limnos.rooms.sqlpp.language import bind, parse_body, plan
from limnos.rooms.sqlpp.language.binder import BoundDataset
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.relations import translate_query
from limnos.rooms.sqlpp.language.relations.nodes import reads_of
from limnos.rooms.sqlpp.language.stored import RecordType, storage_form_of_record

DATAVERSE = ("tpch",)


class Names:
    """The benchmark's tables."""

    def has_dataverse(self, dataverse: tuple[str, ...]) -> bool:
        return dataverse == DATAVERSE

    def resolve(self, dataverse: tuple[str, ...], name: str) -> BoundDataset | None:
        return BoundDataset(dataverse, name) if name in TYPES else None

    def function(self, dataverse: tuple[str, ...], name: str, *, arity: int) -> None:
        return None


def type_of_table(_dataverse: tuple[str, ...], name: str) -> RecordType:
    """Return the type of a table, in the form of datasets."""
    fields, keys = TYPES[name]
    return storage_form_of_record(type_of(f"closed {{ {fields} }}"), tuple((key,) for key in keys)).type


@pytest.mark.parametrize("number", QUERIES)
def test_tpch_query_is_translated_completely(number: int) -> None:
    """No part of a query is left to the evaluator, and every dataset that it names is read."""
    text = QUERIES[number].sqlpp
    expression = bind(parse_body(text), Names(), dataverse=DATAVERSE).expression
    assert isinstance(expression, plan.Subquery)

    translation = translate_query(expression.query, type_of_table)

    assert {read.name for read in reads_of(translation.relation)} == {
        name for name in TYPES if f" {name} " in text.replace("\n", " ")
    }
