"""Contents of policies: custom rules, or when Iceberg tables are compacted (content classes of Gravitino 1.3).

May import `formats.iceberg` for its typed JSON, and `model`. Pure. Must not know who carries a policy out.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.model.errors import BadRequest

Content = TypeVar("Content")
CUSTOM: Final = "custom"
COMPACTION: Final = "system_iceberg_compaction"
OBJECT_TYPES: Final = ("CATALOG", "SCHEMA", "TABLE", "VIEW", "FILESET", "TOPIC", "MODEL", "FUNCTION", "COLUMN")
"""Types of objects to which a policy can be attached."""
_COMPACTED: Final = ("CATALOG", "SCHEMA", "TABLE")


class CustomContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Custom rules."""

    supported_object_types: list[str]
    custom_rules: dict[str, object] | None = None
    properties: dict[str, str] | None = None


class CompactionContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The thresholds and weights for compacting tables."""

    min_data_file_mse: int | None = None
    min_delete_file_number: int | None = None
    data_file_mse_weight: int | None = None
    delete_file_number_weight: int | None = None
    max_partition_num: int | None = None
    rewrite_options: dict[str, str] | None = None


def content_text(policy_type: str, content: Json) -> str:
    """Check the content of a policy and encode it for its record. Raises BadRequest."""
    if policy_type == CUSTOM:
        return msgspec.json.encode(_custom(_read(content, CustomContent))).decode()
    if policy_type == COMPACTION:
        return msgspec.json.encode(_compaction(_read(content, CompactionContent))).decode()
    raise BadRequest(f"Field policyType is {CUSTOM} or {COMPACTION}, not {preview_value(policy_type)}")


def _read(content: Json, shape: type[Content]) -> Content:
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        raise BadRequest(f"Field content does not fit the policy's type: {error}") from None


def _custom(content: CustomContent) -> CustomContent:
    types = tuple(dict.fromkeys(each.upper() for each in content.supported_object_types))
    unknown = [each for each in types if each not in OBJECT_TYPES]
    if unknown or not types:
        text = f"; {preview_value(unknown[0])} is none" if unknown else ""
        raise BadRequest(f"Field supportedObjectTypes names one or more of {', '.join(OBJECT_TYPES)}{text}")
    return msgspec.structs.replace(content, supported_object_types=list(types))


def _compaction(content: CompactionContent) -> CompactionContent:
    for name, value in msgspec.structs.asdict(content).items():
        if isinstance(value, int) and value < 0:
            raise BadRequest(f"Field {name} of the content is negative: {value}")
    return content


def supported_types(policy_type: str, text: str) -> tuple[str, ...]:
    """Return the types of objects to which a policy can be attached."""
    if policy_type == COMPACTION:
        return _COMPACTED
    return tuple(msgspec.json.decode(text, type=CustomContent).supported_object_types)
