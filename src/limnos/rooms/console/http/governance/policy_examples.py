# SPDX-License-Identifier: Apache-2.0
"""Policy types in the order of the page, each with the fields of its form, and an example of its content.

Pure: the service checks the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from limnos.model.errors import BadRequest
from limnos.rooms.console.http.sheets import Choice, FormInput, Sheet, SheetCell, SheetColumn

CONTENT: Final = "content"
PREFIX: Final = "content."
"""The prefix of the names of inputs that are fields of a policy's content."""
_YES_NO: Final = {"": "default", "yes": "yes", "no": "no"}


class PolicyField(NamedTuple):
    """A field of the content of a policy type. `kind` is `number`, `text`, `list` or `flag`."""

    name: str
    label: str
    kind: str = "number"
    is_required: bool = False


class PolicyExample(NamedTuple):
    """A policy type with the fields of its form, an example of valid content, and the effect of the example.

    Without `fields` the form has the whole content as JSON.
    """

    policy_type: str
    content: str
    words: str
    fields: tuple[PolicyField, ...] = ()


_QUIET: Final = PolicyField("quietHours", "Only in these hours, as 22:00-06:00 UTC", "list")
POLICY_EXAMPLES: Final = (
    PolicyExample(
        "system_iceberg_table_maintenance",
        '{"targetFileSizeBytes": 134217728, "quietHours": ["22:00-06:00 UTC"]}',
        "Rewrites small files and manifests, in these hours only.",
        (
            PolicyField("compact", "Compact small files", "flag"),
            PolicyField("manifests", "Rewrite manifests", "flag"),
            PolicyField("indexes", "Refresh Lance indexes", "flag"),
            PolicyField("targetFileSizeBytes", "Target size of a file in bytes"),
            PolicyField("minDeleteFileNumber", "Delete files that make a rewrite due"),
            PolicyField("maxBytesPerDay", "Most bytes rewritten in a day"),
            _QUIET,
        ),
    ),
    PolicyExample(
        "system_iceberg_compaction",
        '{"minDeleteFileNumber": 5}',
        "Rewrites files of a table with so many delete files.",
        (
            PolicyField("minDeleteFileNumber", "Delete files that make a rewrite due"),
            PolicyField("minDataFileMse", "Mean squared error of file sizes that makes it due"),
            PolicyField("maxPartitionNum", "Most partitions at once"),
        ),
    ),
    PolicyExample(
        "system_iceberg_snapshot_expiration",
        '{"olderThanDays": 30, "retainLast": 10}',
        "Expires older snapshots, but not the last ten.",
        (
            PolicyField("olderThanDays", "Older than days"),
            PolicyField("retainLast", "Snapshots that always stay"),
            PolicyField("minSnapshotCount", "Only with more snapshots than"),
        ),
    ),
    PolicyExample(
        "system_iceberg_orphan_file_removal",
        '{"olderThanDays": 7}',
        "Deletes files that no snapshot names, after a week.",
        (
            PolicyField("olderThanDays", "Older than days"),
            PolicyField("dryRun", "Only list them", "flag"),
            PolicyField("cleanupIntervalDays", "Days between two searches"),
        ),
    ),
    PolicyExample(
        "limnos-row-retention",
        '{"column": "created_at", "olderThanDays": 365}',
        "Deletes rows whose column is older than a year.",
        (
            PolicyField("column", "Column with a date or timestamp", "text", is_required=True),
            PolicyField("olderThanDays", "Older than days", is_required=True),
            _QUIET,
        ),
    ),
    PolicyExample(
        "custom",
        '{"supportedObjectTypes": ["TABLE"], "customRules": {"review": "yearly"}}',
        "The server stores it for other programs.",
    ),
)


def type_text(policy_type: str) -> str:
    """Return the name of a policy type for display, such as `snapshot expiration`."""
    short = policy_type.removeprefix("system_iceberg_").removeprefix("limnos-")
    return short.replace("_", " ").replace("-", " ") if short != policy_type else policy_type


def example_of(policy_type: str) -> PolicyExample:
    """Return the policy type of a form; the first one for an unknown type."""
    return next((each for each in POLICY_EXAMPLES if each.policy_type == policy_type), POLICY_EXAMPLES[0])


def content_inputs(example: PolicyExample, *, content: Mapping[str, object] | None = None) -> tuple[FormInput, ...]:
    """Return the inputs for the content of a policy: its fields, or the whole as JSON.

    `content` are the present values. A content with further fields is shown as JSON, so that no field is lost.
    """
    field_names = {each.name for each in example.fields}
    if not example.fields or not (content or {}).keys() <= field_names:
        text = example.content if content is None else msgspec.json.encode(content).decode()
        return (FormInput(name=CONTENT, label="Content as JSON", value=text, rows=3),)
    return tuple(_input(each, (content or {}).get(each.name)) for each in example.fields)


def _input(field: PolicyField, value: object) -> FormInput:
    name = PREFIX + field.name
    if field.kind == "flag":
        choice = "" if value is None else "yes" if value else "no"
        choices = tuple(Choice(word, text, word == choice) for word, text in _YES_NO.items())
        return FormInput(name=name, label=field.label, choices=choices)
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return FormInput(name=name, label=field.label, value=text, is_required=field.is_required)


def content_of(policy_type: str, fields: Mapping[str, str]) -> dict[str, object]:
    """Compose the content of a policy from the fields of its form. Raises BadRequest for JSON that is not an object, or
    a number that is none.
    """
    if CONTENT in fields:
        try:
            return msgspec.json.decode(fields[CONTENT] or "{}", type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise BadRequest(f"The content is not a JSON object: {error}") from None
    content: dict[str, object] = {}
    for each in example_of(policy_type).fields:
        if text := fields.get(PREFIX + each.name, "").strip():
            content[each.name] = _value(each, text)
    return content


def _value(field: PolicyField, text: str) -> object:
    if field.kind == "flag":
        return text == "yes"
    if field.kind == "list":
        return [each.strip() for each in text.split(",") if each.strip()]
    if field.kind == "text":
        return text
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequest(f"{field.label}: give a whole number, not {text[:50]}")
    return int(text)


def types_sheet(base: str, *, metalake: str) -> Sheet:
    """Return the list of policy types, each with a link to its form."""
    columns = (
        SheetColumn(text="Type"),
        SheetColumn(text="Meaning"),
        SheetColumn(text="Content, for programs", hides=True, is_code=True),
    )
    rows = tuple(
        (
            SheetCell(
                text=type_text(each.policy_type),
                href=f"{base}/policies?{urlencode({'metalake': metalake, 'type': each.policy_type})}#form",
            ),
            SheetCell(text=each.words),
            SheetCell(text=each.content),
        )
        for each in POLICY_EXAMPLES
    )
    return Sheet(title="Types of policies", columns=columns, rows=rows)
