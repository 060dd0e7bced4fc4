# SPDX-License-Identifier: Apache-2.0
"""Plans of a run: the inputs of each step with their pins, and tables for rejected rows."""

from __future__ import annotations

import json

import pytest

from limnos.client import Client
from limnos.pipeline.checkpoints import INPUTS
from limnos.pipeline.checks import check
from limnos.pipeline.definitions import DEFINITION, UNRECORDED, declared_parts, encode
from limnos.pipeline.plan import plan
from tests.integration.live import LiveServer
from tests.pipeline.declared import declared_pipeline, make_table

pytestmark = [pytest.mark.integration, pytest.mark.spark]


READ_UP_TO = {"known": 5, "same": 77, "older": 5, "changed": 5}


def test_plan_lists_inputs_and_pins_of_each_step(server: LiveServer, admin: Client, namespace: str) -> None:
    """A plan lists the inputs of each step with the pins that a run would use; an incremental step begins at the
    checkpoint of its published table.
    """
    make_table(server, namespace, "empty")
    make_table(server, namespace, "orders", summary={})
    recorded = {name: {INPUTS: json.dumps({f"main.{namespace}.orders": at})} for name, at in READ_UP_TO.items()}
    same = declared_pipeline(f"{namespace}.same: {{sql: SELECT * FROM {namespace}.orders, write: append}}")
    definition = encode(declared_parts(same, same.steps[0], sources=()))
    for name, summary in recorded.items():
        text = definition.replace('"the query":"', '"the query":"other') if name == "changed" else definition
        further = {} if name == "older" else {DEFINITION: text}
        make_table(server, namespace, name, summary=summary | further)
    pipeline = declared_pipeline(
        f"""
        {namespace}.all: {{sql: "SELECT * FROM {namespace}.orders, {namespace}.empty, files"}}
        {namespace}.known: {{sql: SELECT * FROM {namespace}.orders, incremental: true, write: append}}
        {namespace}.same: {{sql: SELECT * FROM {namespace}.orders, incremental: true, write: append}}
        {namespace}.fresh: {{sql: SELECT * FROM {namespace}.orders JOIN {namespace}.all, incremental: true, write: append}}
        {namespace}.older: {{sql: SELECT * FROM {namespace}.orders, incremental: true, write: append}}
        {namespace}.changed: {{sql: SELECT * FROM {namespace}.orders, incremental: true, write: append}}
        """,
        head="sources: {files: data/*.csv}\n",
    )

    planned = plan(check(pipeline, client=admin))

    reads_by_step = {
        one.step.table[-1]: [(read.name.split(".")[-1], read.kind, read.why) for read in one.reads] for one in planned
    }
    assert [(one.step.table[-1], one.level, one.is_new) for one in planned] == [
        ("all", 0, True),
        ("known", 0, False),
        ("same", 0, False),
        ("older", 0, False),
        ("changed", 0, False),
        ("fresh", 1, True),
    ]
    assert reads_by_step["all"] == [
        ("empty", "table", "it is empty"),
        ("orders", "table", "the whole, as it is when the run starts"),
        ("files", "source", "files data/*.csv, csv"),
    ]
    assert reads_by_step["known"][0][2].startswith("the rows after snapshot 5, if those can be read")
    assert reads_by_step["older"][0][2] == f"the whole: {UNRECORDED}"
    assert reads_by_step["changed"][0][2] == "the whole: the query changed since it was published"
    assert reads_by_step["same"][0][2] == (
        "nothing new since snapshot 77: its rows are read only to join new rows of other inputs with them"
    )
    assert [why for _, _, why in reads_by_step["fresh"]] == [
        f"the result of step {namespace}.all in this run",
        "the whole: this step has published nothing from it yet",
    ]


def test_joined_table_is_read_for_new_rows_of_the_other(server: LiveServer, admin: Client, namespace: str) -> None:
    """A joined table without new rows is read for the new rows of the other table. A mode that rewrites the table reads
    all inputs whole.
    """
    make_table(server, namespace, "orders", summary={})
    make_table(server, namespace, "customers", summary={})
    orders, customers = f"main.{namespace}.orders", f"main.{namespace}.customers"
    query = f"SELECT o.* FROM {namespace}.orders o JOIN {namespace}.customers c ON o.a = c.a"
    modes = {"ahead": "append", "rewritten": "replace"}
    lines = [
        f"{namespace}.{name}: {{sql: {query!r}, incremental: true, write: {mode}}}" for name, mode in modes.items()
    ]
    pipeline = declared_pipeline("\n        ".join(["", *lines, ""]))
    inputs = json.dumps({orders: 5, customers: 77})
    for step in pipeline.steps:
        definition = encode(declared_parts(pipeline, step, sources=()))
        make_table(server, namespace, step.table[-1], summary={INPUTS: inputs, DEFINITION: definition})

    planned = plan(check(pipeline, client=admin))

    why = {(one.step.table[-1], each.name.split(".")[-1]): each.why for one in planned for each in one.reads}
    assert why["ahead", "customers"].startswith("nothing new since snapshot 77")
    assert why["ahead", "orders"].startswith("the rows after snapshot 5")
    assert why["rewritten", "orders"] == "the whole: `replace` rewrites the whole table"
    assert why["rewritten", "customers"] == (
        "nothing new since snapshot 77: read, as a whole, only if another input or a setting has changed"
    )


def test_quarantine_tables_are_planned_with_their_step(
    admin: Client, server: LiveServer, ana: Client, namespace: str
) -> None:
    """A quarantine table is planned with its step, and the privilege to write it is required like that for the step's
    table.
    """
    for name in ("t", "t__quarantine"):
        make_table(server, namespace, name)
    role = f"role_{namespace}"
    admin.roles.allow(role, ["use_catalog", "use_schema", "create_table", "select_table"], on="main", kind="catalog")
    admin.roles.allow(role, ["register_job_template", "use_job_template", "run_job"], on="lake", kind="metalake")
    admin.roles.allow(role, ["modify_table"], on=f"main.{namespace}.t", kind="table")
    rule = "{row: a > 0, action: quarantine}"
    pipeline = declared_pipeline(f"{namespace}.t: {{sql: SELECT 1 AS a, expect: [{rule}]}}", name="apart")

    lacking = check(pipeline, client=ana).missing
    (planned,) = plan(check(pipeline, client=admin))

    assert [(one.table[-1], one.needed_for) for one in lacking] == [("t__quarantine", "write")]
    assert planned.aside == (("main", namespace, "t__quarantine"),)
