# SPDX-License-Identifier: Apache-2.0
"""Policies of Polaris: translates its four types of table maintenance to policies of this server.

Pure. Polaris stores policies but does not execute them, so some of its fields have no counterpart here; the caller
reports their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.formats.gravitino.policies import (
    COMPACTION,
    CONCURRENT_GROUPS,
    ORPHAN_DAYS_MIN,
    ORPHAN_FILE_REMOVAL,
    SNAPSHOT_EXPIRATION,
    TABLE_MAINTENANCE,
    content_text,
)
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest

DATA_COMPACTION: Final = "system.data-compaction"
METADATA_COMPACTION: Final = "system.metadata-compaction"
ORPHANS: Final = "system.orphan-file-removal"
EXPIRY: Final = "system.snapshot-expiry"
_ACTION_OPTIONS: Final = {
    "target_file_size_bytes": "target-file-size-bytes",
    "max_concurrent_file_group_rewrites": CONCURRENT_GROUPS,
    "min_input_files": "min-input-files",
    "delete_file_threshold": "delete-file-threshold",
}
"""Fields of a compaction in Polaris that are options of Iceberg's action, with underscores or dashes."""


class TranslatedPolicy(NamedTuple):
    """A policy of this server, and the fields of the original that have no counterpart."""

    policy_type: str
    content: str
    enabled: bool
    left_out: tuple[str, ...]


class PolarisContent(msgspec.Struct, frozen=True):
    """The content of a policy of Polaris. Further fields are allowed."""

    enable: bool
    config: dict[str, str | int | float | bool] = {}
    version: str | None = None


def translate_policy(policy_type: str, text: str) -> TranslatedPolicy | None:
    """Translate a policy; None if its type is not one of Polaris' four maintenance types.

    Raises BadRequest for malformed content.

    Args:
        policy_type: The policy's type in Polaris, such as `system.data-compaction`.
        text: The policy's content as JSON.
    """
    translate = _TRANSLATIONS.get(policy_type)
    if translate is None:
        return None
    try:
        content = msgspec.json.decode(text, type=PolarisContent)
        fields: Json = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the content is not that of a policy {policy_type}: {error}") from None
    left = {name: fields[name] for name in fields.keys() - {"enable", "config", "version"}}
    config: Json = dict(content.config)
    translated, own = translate(config, left)
    left_out = (*sorted(left), *[f"config.{name}" for name in sorted(config)])
    return TranslatedPolicy(translated, content_text(translated, own), content.enable, left_out)


def _pop_integer(fields: Json, name: str, *, least: int) -> int | None:
    """Remove an integer field from `fields` and return it.

    If it is missing, not an integer, or below `least`, return None without removing it. A string of digits is an
    integer, too.
    """
    value = fields.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        return None
    del fields[name]
    return value


def _without_nulls(**values: object) -> Json:
    return {name: value for name, value in values.items() if value is not None}


_Translation = Callable[[Json, Json], tuple[str, Json]]


def _data_compaction(config: Json, _: Json) -> tuple[str, Json]:
    options: dict[str, str] = {}
    for name in list(config):
        option = _ACTION_OPTIONS.get(name.replace("-", "_"))
        number = None if option is None else _pop_integer(config, name, least=1)
        if option is not None and number is not None:
            options[option] = str(number)
    return COMPACTION, _without_nulls(rewriteOptions=options or None)


def _metadata_compaction(_: Json, __: Json) -> tuple[str, Json]:
    return TABLE_MAINTENANCE, {"compact": None, "manifests": True, "indexes": None}


def _orphans(_: Json, top: Json) -> tuple[str, Json]:
    days = _pop_integer(top, "max_orphan_file_age_in_days", least=0)
    return ORPHAN_FILE_REMOVAL, _without_nulls(olderThanDays=None if days is None else max(days, ORPHAN_DAYS_MIN))


def _expiry(config: Json, _: Json) -> tuple[str, Json]:
    days, least = (
        _pop_integer(config, "max_snapshot_age_days", least=0),
        _pop_integer(config, "min_snapshot_to_keep", least=1),
    )
    return SNAPSHOT_EXPIRATION, _without_nulls(olderThanDays=days, retainLast=least)


_TRANSLATIONS: Final[Mapping[str, _Translation]] = {
    DATA_COMPACTION: _data_compaction,
    METADATA_COMPACTION: _metadata_compaction,
    ORPHANS: _orphans,
    EXPIRY: _expiry,
}
