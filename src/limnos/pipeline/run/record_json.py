# SPDX-License-Identifier: Apache-2.0
"""JSON of a run's record: pins, digests and outcomes of steps.

Encodes and decodes, so that another process than the runner's can resume, publish or discard a run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypedDict

from limnos.pipeline import lineage
from limnos.pipeline.declaration import Pipeline, StepDeclaration
from limnos.pipeline.declaration_json import plain
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.modules import code_of
from limnos.pipeline.outcomes import (
    BuiltStep,
    ExpectationFinding,
    LanceState,
    ReadPin,
    StagedVersion,
    StepBranch,
    StepOutcome,
)
from limnos.pipeline.side_tables import names_source, names_word


def step_digest(pipeline: Pipeline, step: StepDeclaration) -> str:
    """Return a digest of a step and the sources that it or a rule of it names, including the code of their Python
    functions.

    A different digest means that the step has changed.
    """
    rules = "\n".join(rule.query for rule in step.expectations if rule.query is not None)
    named_sources = [
        source for source in pipeline.sources if names_source(step, source.name) or names_word(rules, source.name)
    ]
    sources = [plain(source) for source in named_sources]
    digested_values = (step.body, step.embed, *(source.kind for source in named_sources))
    functions = [getattr(one, "callable", None) for one in digested_values]
    code = [None if function is None else code_of(function) for function in functions]
    text = json.dumps([plain(dataclasses.replace(step, tags=())), code, sources], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encode_pins(pins: Mapping[Parts, ReadPin]) -> list[dict[str, object]]:
    """Encode the pins at the start of the run, for the run's options."""
    return [
        {"table": list(table), "snapshot": pin.snapshot, "fingerprint": pin.fingerprint} | _lance(pin)
        for table, pin in sorted(pins.items())
    ]


def pins_of(result: object) -> dict[Parts, ReadPin]:
    """Decode the pins that `encode_pins` has encoded."""
    pins: dict[Parts, ReadPin] = {}
    for each in result if isinstance(result, list) else ():
        table = tuple(each["table"])
        pins[table] = ReadPin(
            name=".".join(table),
            table=table,
            snapshot=each["snapshot"],
            fingerprint=each["fingerprint"],
            lance=_lance_of(each),
        )
    return pins


def _lance(pin: ReadPin) -> dict[str, object]:
    return {} if pin.lance is None else {"lance": dataclasses.asdict(pin.lance)}


def _lance_of(entries: Mapping[str, Any]) -> LanceState | None:
    entry = entries.get("lance")
    if not isinstance(entry, Mapping):
        return None
    staged_versions = entry.get("staged")
    return LanceState(
        digest=str(entry.get("digest", "")),
        staged=StagedVersion(**staged_versions) if isinstance(staged_versions, Mapping) else None,
    )


def encode_source_pins(pins: Mapping[str, ReadPin]) -> dict[str, object]:
    """Encode the pins of sources at the start of the run, for the run's options."""
    return {name: pin.fingerprint for name, pin in sorted(pins.items())}


def source_pins_of(result: object) -> dict[str, ReadPin]:
    """Decode the pins that `encode_source_pins` has encoded."""
    pin_entries = result if isinstance(result, Mapping) else {}
    return {str(name): ReadPin(name=str(name), fingerprint=str(each)) for name, each in pin_entries.items()}


def encode_built(built: Mapping[str, BuiltStep]) -> list[dict[str, object]]:
    """Encode the tables of an environment that a promotion copies, for the run's options."""
    return [
        {"step": name, "table": list(one.table), "snapshot": one.snapshot, "run": one.run}
        for name, one in sorted(built.items())
    ]


def built_of(result: object) -> dict[str, BuiltStep]:
    """Decode the tables that `encode_built` has encoded."""
    return {
        str(each["step"]): BuiltStep(table=tuple(each["table"]), snapshot=each["snapshot"], run=str(each["run"]))
        for each in (result if isinstance(result, list) else ())
    }


class OutcomeRecord(TypedDict, total=False):
    """The part of a step's outcome that the run's record stores."""

    rows: int
    bytes: int
    outputs: list[dict[str, object]]
    inputs: list[dict[str, object]]
    findings: list[dict[str, object]]
    phases_s: dict[str, float]


def encode_outcome(outcome: StepOutcome, *, digest: str, state: str) -> OutcomeRecord:
    """Encode the outcome of a step as the JSON of a run's record. `state` is that of `modified_steps.step_states`."""
    return {
        "rows": outcome.rows,
        "bytes": outcome.bytes,
        "outputs": _outputs(outcome, digest=digest, state=state),
        "inputs": [_input(pin) for pin in outcome.pins],
        "findings": encode_findings(outcome.findings),
        "phases_s": encode_phases(outcome.phases),
    }


def encode_phases(seconds: Mapping[str, float]) -> dict[str, float]:
    """Round seconds by phase to milliseconds."""
    return {phase: round(value, 3) for phase, value in seconds.items()}


def encode_findings(findings: Iterable[ExpectationFinding]) -> list[dict[str, object]]:
    """Encode findings; absent samples are omitted."""
    result = ({field.name: getattr(finding, field.name) for field in fields(finding)} for finding in findings)
    return [{name: value for name, value in each.items() if value is not None} for each in result]


def _outputs(outcome: StepOutcome, *, digest: str, state: str) -> list[dict[str, object]]:
    """Encode the branches. The step's lineage, and the digest and state of its declaration, which a resumed run may
    have changed, are stored with the first, which is the step's own table.
    """
    results = [_output(branch) for branch in outcome.branches]
    if results:
        results[0] |= {"digest": digest, "state": state}
    if results and outcome.lineage is not None:
        results[0]["lineage"] = lineage.encode_lineage(outcome.lineage)
    return results


def _output(branch: StepBranch) -> dict[str, object]:
    staged_fields = {} if branch.staged is None else {"staged": [dataclasses.asdict(each) for each in branch.staged]}
    return staged_fields | {
        "table": list(branch.table),
        "catalog": branch.table[0],
        "branch": branch.name,
        "base": branch.base,
        "head": branch.head,
        "uuid": branch.uuid,
        "schema_id": branch.schema_id,
        "is_new": branch.is_new,
        "columns_to_drop": list(branch.columns_to_drop),
    }


def branch_of(entries: Mapping[str, Any]) -> StepBranch:
    """Decode a table's branch (name, base, head) from the output of a recorded step."""
    return StepBranch(
        table=tuple(entries["table"]),
        name=entries["branch"],
        uuid=entries["uuid"],
        schema_id=entries["schema_id"],
        base=entries["base"],
        head=entries["head"],
        is_new=entries["is_new"],
        columns_to_drop=tuple(entries.get("columns_to_drop", ())),
        staged=None if entries.get("staged") is None else tuple(StagedVersion(**each) for each in entries["staged"]),
    )


def _input(pin: ReadPin) -> dict[str, object]:
    response: dict[str, object] = {"table" if pin.table else "source": list(pin.table) if pin.table else pin.name}
    further = {
        "snapshot": pin.snapshot,
        "branch": pin.branch,
        "from_snapshot": pin.since,
        "whole_because": pin.whole_because,
        "fingerprint": pin.fingerprint,
    }
    return response | {name: value for name, value in further.items() if value is not None}


def outcome_of(
    *, outputs: Iterable[Mapping[str, Any]], inputs: Iterable[Mapping[str, Any]], rows: int | None, size: int | None
) -> StepOutcome:
    """Decode the parts of an outcome that publishing, discarding and resuming need: branches, pins and lineage."""
    output_tables = list(outputs)
    record = output_tables[0].get("lineage") if output_tables else None
    return StepOutcome(
        branches=tuple(branch_of(each) for each in output_tables),
        pins=tuple(_pin_of(each) for each in inputs),
        findings=(),
        rows=rows or 0,
        bytes=size or 0,
        seconds=0.0,
        lineage=None if record is None else lineage.decode_lineage(record),
    )


def _pin_of(entries: Mapping[str, Any]) -> ReadPin:
    table = tuple(entries["table"]) if entries.get("table") else None
    return ReadPin(
        name=".".join(table) if table else str(entries["source"]),
        table=table,
        snapshot=entries.get("snapshot"),
        branch=entries.get("branch"),
        since=entries.get("from_snapshot"),
        whole_because=entries.get("whole_because"),
        fingerprint=entries.get("fingerprint"),
    )
