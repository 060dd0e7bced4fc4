# SPDX-License-Identifier: Apache-2.0
"""The output of EXPLAIN: the parts of a query that Spark and the evaluator execute, with the reasons.

Must not know servers: the caller passes the types of datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.lookups import SCANS_MAX, LookupIndex, lookup_in
from limnos.rooms.sqlpp.language.plan import wire
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression, translate_query
from limnos.rooms.sqlpp.language.relations.translator import DatasetTypes
from limnos.rooms.sqlpp.language.scans import ScanRequirement, prepare_scans
from limnos.rooms.sqlpp.language.stored import RecordType, StorageForm

WHOLE = "the whole query"
VALUES = "values of SELECT, from each row of the result"
ROWS = "conditions and values, from each input row"


def explain_plan(
    expression: plan.Expression,
    forms: Callable[[tuple[str, ...], str], StorageForm | None],
    *,
    indexes: Callable[[tuple[str, ...], str], Sequence[LookupIndex]] = lambda *_: (),
) -> bytes:
    """Return as JSON the bound plan, and which parts of it Spark, the evaluator or lookups execute.

    Args:
        expression: The plan.
        forms: Returns the storage form of a dataset; None if unknown.
        indexes: Returns the indexes of a dataset.
    """

    def types(dataverse: tuple[str, ...], name: str) -> RecordType | None:
        form = forms(dataverse, name)
        return None if form is None else form.type

    runs: dict[str, object] = _runs(expression, types)
    looked_up = _index_lookups(expression, forms, indexes=indexes)
    if looked_up:
        many = (
            "many files may have such a key"
            if "index" not in looked_up
            else "many objects, or many files, may have such values"
        )
        runs = {**looked_up, "unless": f"{many}; then: {msgspec.json.encode(runs).decode()}"}
    return msgspec.json.encode({**runs, "plan": msgspec.Raw(wire.encode(expression))})


def _index_lookups(
    expression: plan.Expression,
    forms: Callable[[tuple[str, ...], str], StorageForm | None],
    *,
    indexes: Callable[[tuple[str, ...], str], Sequence[LookupIndex]],
) -> dict[str, list[str]]:
    """Return the datasets that are looked up, under `key` or `index`; for an index with its name.

    Empty unless all scans of the statement are such lookups.
    """
    _, requirements = prepare_scans(expression)
    entries: dict[str, list[str]] = {}
    for one in requirements:
        form, name = forms(one.dataverse, one.name), ".".join((*one.dataverse, one.name))
        result = form and lookup_in(form, one.conditions, indexes=indexes(one.dataverse, one.name))
        if not result or len(requirements) > SCANS_MAX:
            return {}
        by, text = ("key", name) if result.by is None else ("index", f"{name}: {result.by}")
        entries.setdefault(by, []).append(text)
    return entries


def _runs(expression: plan.Expression, types: DatasetTypes) -> dict[str, object]:
    reason = "it is an expression, not a query"
    if isinstance(expression, plan.Subquery):
        try:
            query = translate_query(expression.query, types)
        except UntranslatableExpression as uncarried:
            reason = str(uncarried)
        else:
            if not query.layout.finished:
                return {"spark": [WHOLE]}
            because = f"not executed by Spark: {'; '.join(query.layout.finished)}"
            return {"spark": [WHOLE], "evaluator": VALUES if query.layout.keep is None else ROWS, "because": because}
    _, requirements = prepare_scans(expression, types=types)
    return {
        "spark": [_scan_text(one) for one in requirements],
        "evaluator": WHOLE,
        "because": f"not executed by Spark: {reason}",
    }


def _scan_text(requirement: ScanRequirement) -> str:
    """Describe one scan in a line of text: the objects, fields or groups that Spark returns."""
    if requirement.carried is not None:
        return "a query inside"
    name = ".".join((*requirement.dataverse, requirement.name))
    what = "objects" if requirement.fields is None else f"fields {', '.join(sorted(requirement.fields)) or 'none'}"
    if requirement.grouped is not None:
        what = "groups"
    limited = f", the first {requirement.limit}" if requirement.limit is not None else ""
    where = f", filtered by {len(requirement.conditions)} conditions" if requirement.conditions else ""
    return f"{name}: {what}{where}{limited}"


def as_text(data: bytes) -> bytes:
    """Return the JSON of EXPLAIN as one JSON string: one line for each plan node, indented below its parent."""
    lines: list[str] = []
    _lines(msgspec.json.decode(data), lines, label="", depth=0)
    return msgspec.json.encode("\n".join(lines))


def _lines(value: object, lines: list[str], *, label: str, depth: int) -> None:
    start = "  " * depth + (f"{label}: " if label else "")
    if isinstance(value, list):
        if not any(isinstance(item, (dict, list)) for item in value):
            lines.append(f"{start}{', '.join(map(_word, value))}")
            return
        for item in value:
            _lines(item, lines, label=label, depth=depth)
    elif isinstance(value, dict):
        entries = {key: part for key, part in value.items() if key not in ("n", "at") and part not in (None, [], False)}
        scalar_entries = {key: part for key, part in entries.items() if not isinstance(part, (dict, list))}
        words = [str(value["n"])] if "n" in value else []
        words += [f"{key}={_word(part)}" for key, part in scalar_entries.items()]
        lines.append(f"{start}{' '.join(words)}".rstrip())
        for key, part in entries.items():
            if key not in scalar_entries:
                _lines(part, lines, label=key, depth=depth + 1)
    else:
        lines.append(f"{start}{_word(value)}")


def _word(value: object) -> str:
    return msgspec.json.encode(value).decode()
