# SPDX-License-Identifier: Apache-2.0
"""Jobs of engines."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import bind, outline, parse_body
from limnos.rooms.sqlpp.language.binder import EmptyNameResolver
from limnos.rooms.sqlpp.language.jobs import DatasetRef, EngineJob, ExternalSource, decode, encode, text_of, type_of
from limnos.rooms.sqlpp.language.plan import wire


def test_job_round_trips_through_bytes() -> None:
    """A job is decoded from its bytes to the same job."""
    orders = DatasetRef(path=("main", "sales", "east", "orders"), type="OPEN { oid: bigint }", key=(("oid",),))
    bound = bind(parse_body("{'oid': 1}"), EmptyNameResolver())
    plan = wire.encode(bound.expression)
    job = EngineJob(
        id="1",
        kind="insert",
        plan=plan,
        slots=bound.slots,
        reads=(orders,),
        target=orders,
        returning=plan,
        returning_slots=1,
        credential="secret",
        deadline_ms=5000,
        source=ExternalSource(adapter="localfs", options=(("path", "p"),)),
    )

    read = decode(encode(job))

    assert read == job
    assert read.expression == read.returns == bound.expression
    assert (orders.dataverse, orders.name) == (("sales", "east"), "orders")


@pytest.mark.parametrize(
    "text",
    ["OPEN { oid: bigint }", "CLOSED { `a b`: int?, c: [string], d: {{ CLOSED { e: uuid } }}? }", "OPEN {  }"],
)
def test_type_round_trips_through_text(text: str) -> None:
    """A type's text is parsed and printed, including openness and optional fields."""
    read = type_of(text)

    assert text_of(read).split() == text.split()
    assert outline(type_of(text_of(read))) == outline(read)
