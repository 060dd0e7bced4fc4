# SPDX-License-Identifier: Apache-2.0
"""Definitions of steps: digests of everything that determines a step's rows beside its inputs.

An incremental step continues from its published table only if that table was made by the same definition. The digests
are in the summary of the step's published snapshot, one per part, so that a change can be named. Must not know Spark;
the engine adds the parts that only it knows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    Pipeline,
    PythonStep,
    RuleKind,
    StepDeclaration,
    WriteMode,
)
from limnos.pipeline.declaration_json import plain
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.modules import code_of, code_of_file
from limnos.pipeline.source_declarations import Kafka, SourceKind

DEFINITION = "limnos.definition"
"""Summary key: JSON that maps each part of the definition to its digest."""
QUERY, WRITE, RULES, CODE = "the query", "the write mode", "the rules that remove rows", "the Python code"
EMBEDDING = "the embedding"
_SOURCE = "source "
UNRECORDED = "what the step was made of was not recorded when it was published (by an earlier release)"


def declared_parts(pipeline: Pipeline, step: StepDeclaration, *, sources: Collection[str]) -> dict[str, str]:
    """Return digests of the parts that the declaration has: query, write mode, rules, and each of the `sources`."""
    known = {source.name: source for source in pipeline.sources}
    parts = {QUERY: plain(step.body), WRITE: plain(step.write)}
    if rules := removing_rules(step):
        parts[RULES] = [(rule.condition, rule.action.value) for rule in rules]
    if step.embed is not None:
        parts[EMBEDDING] = plain(replace(step.embed, batch=0, retries=0))
    parts |= {f"{_SOURCE}{name}": plain(_determining(known[name].kind)) for name in sorted(sources) if name in known}
    return digests(parts)


def _determining(kind: SourceKind) -> object:
    """Return the part of a source that determines its rows. A topic has the same records through other brokers, and a
    step continues from its offsets whatever `from`, `records` and `malformed` say.
    """
    if not isinstance(kind, Kafka):
        return kind
    return (kind.topic, kind.format, kind.schema, kind.columns, kind.is_compacted, kind.options)


def code_part(step: StepDeclaration) -> dict[str, str]:
    """Return the digest of the code of the step's Python function, with what it imports; empty for other steps."""
    function = step.body.callable if isinstance(step.body, PythonStep) else None
    return {} if function is None else digests({CODE: code_of(function)})


def parameter_parts(values: Mapping[str, Scalar], used: Iterable[str]) -> dict[str, str]:
    """Return a digest for each parameter that the step uses, of its value."""
    return digests({f"parameter {name}": values[name] for name in sorted(used) if name in values})


def digests(parts: Mapping[str, object]) -> dict[str, str]:
    """Return a digest of each value."""
    return {name: _digest(value) for name, value in parts.items()}


def removing_rules(step: StepDeclaration) -> tuple[Expectation, ...]:
    """Return the step's rules that decide which rows are written: those that drop or quarantine rows."""
    actions = (ExpectationAction.DROP, ExpectationAction.QUARANTINE)
    return tuple(rule for rule in step.expectations if rule.kind is RuleKind.ROW and rule.action in actions)


def encode(parts: Mapping[str, str]) -> str:
    """Encode a definition for the summary of a snapshot."""
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def decode(text: str | None) -> Mapping[str, str] | None:
    """Decode a definition; None if there is none, or if it is not in our form, because every writer may write it."""
    try:
        parts = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(parts, dict):
        return None
    return {name: value for name, value in parts.items() if isinstance(value, str)}


def mode_reason(step: StepDeclaration) -> str | None:
    """Return why the write mode of an incremental step makes a run read its inputs whole if one has changed; None if it
    does not. If none has changed, nothing is written in any mode.
    """
    if step.write.mode is WriteMode.REPLACE:
        return "`replace` rewrites the whole table"
    if step.write.mode is WriteMode.PARTITIONS:
        return "`partitions` replaces whole partitions, of which an increment has only the new rows"
    if step.write.delete_missing:
        return "`delete_missing` must read every row of the source"
    return None


def change_reason(recorded: str | None, now: Mapping[str, str]) -> str | None:
    """Return the changes since the definition `recorded` was published, in words; None without one."""
    former_parts = decode(recorded)
    return UNRECORDED if former_parts is None else _changed_parts(former_parts, now)


def declared_change(pipeline: Pipeline, step: StepDeclaration, *, recorded: str | None) -> str | None:
    """Return what the declaration and its files have changed since, as `change_reason` does.

    Nothing is imported. Parameters and settings of the session are not compared.
    """
    former_parts = decode(recorded)
    if former_parts is None:
        return UNRECORDED
    sources = {name.removeprefix(_SOURCE) for name in former_parts if name.startswith(_SOURCE)}
    declared = {**declared_parts(pipeline, step, sources=sources), **_code_of_file(pipeline, step)}
    return _changed_parts(
        {name: former_parts[name] for name in (*declared, RULES, EMBEDDING) if name in former_parts}, declared
    )


def _changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    changed_names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return f"{_join_names(changed_names)} changed since it was published" if changed_names else None


def _code_of_file(pipeline: Pipeline, step: StepDeclaration) -> dict[str, str]:
    if not isinstance(step.body, PythonStep) or pipeline.at is None:
        return {}
    code = code_of_file(step.body.function.partition(":")[0], Path(pipeline.at.file).parent)
    return {} if code is None else digests({CODE: code})


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
