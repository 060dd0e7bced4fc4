# SPDX-License-Identifier: Apache-2.0
"""JSON of a run's record: the declaration, pins and outcomes, encoded and decoded."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

from limnos.pipeline.declaration import (
    Expectation,
    Pipeline,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.outcomes import ExpectationFinding, ReadPin, StagedVersion, StepBranch, StepOutcome
from limnos.pipeline.run import record_json
from limnos.pipeline.run.commit import key_of
from limnos.pipeline.side_tables import names_source
from limnos.pipeline.source_declarations import DeclaredSource, Files

STEP = StepDeclaration(
    table=("main", "a", "t.u"),
    body=Sql(text="SELECT 1 AS x"),
    write=WriteDeclaration(mode=WriteMode.MERGE, keys=("x",)),
)
PIPELINE = Pipeline(name="p", catalog="main", steps=(STEP,))
BRANCH = StepBranch(
    table=("main", "a", "t.u"),
    name="run_1",
    uuid="u",
    schema_id=3,
    base=None,
    head=7,
    is_new=True,
    columns_to_drop=("y",),
)


def test_declaration_json_omits_defaults_and_positions() -> None:
    """Defaults and source positions are omitted; a body has its kind."""
    document = encode_declaration(PIPELINE)

    assert json.loads(json.dumps(document)) == {
        "name": "p",
        "catalog": "main",
        "steps": [
            {
                "table": ["main", "a", "t.u"],
                "body": {"kind": "sql", "text": "SELECT 1 AS x"},
                "write": {"mode": "merge", "keys": ["x"]},
            }
        ],
    }


def test_step_digest_depends_on_its_body() -> None:
    """The digest depends on the body of a step. Equal steps have equal digests."""
    other = replace(STEP, body=Sql(text="SELECT 2 AS x"))

    assert record_json.step_digest(PIPELINE, STEP) == record_json.step_digest(PIPELINE, replace(STEP))
    assert record_json.step_digest(PIPELINE, STEP) != record_json.step_digest(PIPELINE, other)


def test_step_digest_depends_on_the_sources_that_the_step_names() -> None:
    """Another source of the pipeline does not change a step."""
    read, unread = (
        DeclaredSource(name=name, kind=Files(path=f"{name}.csv", format="csv")) for name in ("orders", "other")
    )
    step = replace(STEP, body=Sql(text="SELECT * FROM orders"))
    digests = [
        record_json.step_digest(replace(PIPELINE, sources=sources), step)
        for sources in (
            (read, unread),
            (read, replace(unread, kind=Files(path="new.csv", format="csv"))),
            (replace(read, kind=Files(path="new.csv", format="csv")), unread),
        )
    ]

    assert digests[0] == digests[1] != digests[2]


def test_step_digest_depends_on_the_sources_of_its_rules() -> None:
    """A rule's query may name a source. The step itself does not read it, and does not write its side tables."""
    rule = Expectation(name="r", kind=RuleKind.EMPTY, query="SELECT * FROM orders WHERE x IS NULL")
    step = replace(STEP, expectations=(rule,))
    sources = [DeclaredSource(name="orders", kind=Files(path=f"{name}.csv", format="csv")) for name in ("a", "b")]
    digests = {record_json.step_digest(replace(PIPELINE, sources=(each,)), step) for each in sources}

    assert len(digests) == 2
    assert not names_source(step, "orders")


def test_pins_round_trip() -> None:
    """Pins of tables with snapshots, and of views with definitions, are decoded to the same values."""
    pins = {
        ("main", "a"): ReadPin(name="main.a", table=("main", "a"), snapshot=5),
        ("main", "v"): ReadPin(name="main.v", table=("main", "v"), fingerprint="view:1"),
    }

    assert record_json.pins_of(json.loads(json.dumps(record_json.encode_pins(pins)))) == pins


def test_outcome_round_trip_omits_findings() -> None:
    """Branches, pins and counts are decoded to the same values; findings are only in the record."""
    finding = ExpectationFinding(
        rule="r", kind="row", action="warn", broken=1, checked=2, tolerated=0.0, held=False, message="1 of 2"
    )
    pins = (
        ReadPin(name="main.a", table=("main", "a"), snapshot=5, whole_because="new"),
        ReadPin(name="days", fingerprint="f"),
    )
    outcome = StepOutcome(branches=(BRANCH,), pins=pins, findings=(finding,), rows=3, bytes=9, seconds=1.0)

    record = json.loads(json.dumps(record_json.encode_outcome(outcome, digest="d1", state="s1")))

    assert "sample" not in record["findings"][0]
    again = record_json.outcome_of(
        outputs=record["outputs"], inputs=record["inputs"], rows=record["rows"], size=record["bytes"]
    )
    assert (again.branches, again.pins, again.rows, again.bytes) == (outcome.branches, outcome.pins, 3, 9)


def test_publish_attempt_has_stable_idempotency_key() -> None:
    """The same attempt to publish has the same idempotency key; another attempt has another key."""
    assert key_of("r", 1, again=0) == key_of("r", 1, again=0)
    assert (
        len({key_of("r", 1, again=0), key_of("r", 1, again=1), key_of("r", 2, again=0), key_of("s", 1, again=0)}) == 4
    )


def test_staged_versions_survive_the_record() -> None:
    """Another process publishes the staged versions of a Lance table that the record names."""
    staged = (
        StagedVersion(version=3, manifest_path="a/3", manifest_size=9),
        StagedVersion(version=4, manifest_path="b"),
    )
    branch = dataclasses.replace(BRANCH, staged=staged)
    outcome = StepOutcome(branches=(branch,), pins=(), findings=(), rows=1, bytes=1, seconds=0.0)

    encoded = json.loads(json.dumps(record_json.encode_outcome(outcome, digest="d1", state="s1")["outputs"]))

    assert record_json.branch_of(encoded[0]) == branch
