"""Versions of models, as frozen values.

May import msgspec only. Knows no SQL and no wire format. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

UNKNOWN_URI: Final = "unknown"
"""The name of a URI that came without one."""
_NUMBER = re.compile("[0-9]{1,18}")


class ModelVersionReference(NamedTuple):
    """A version as it is asked for: by its number, or by an alias."""

    text: str
    is_alias: bool

    @property
    def number(self) -> int | None:
        """The number that is asked for; None for an alias, and for what is no number."""
        return int(self.text) if not self.is_alias and _NUMBER.fullmatch(self.text) else None


class ModelVersion(msgspec.Struct, frozen=True):
    """A version of a model: where it lies, by the names of its URIs, and the aliases that lead to it."""

    version: int
    comment: str | None
    properties: Mapping[str, str]
    uris: Mapping[str, str]
    aliases: tuple[str, ...]
    created_by: str = ""
    created_at: int = 0
    modified_by: str | None = None
    modified_at: int | None = None
