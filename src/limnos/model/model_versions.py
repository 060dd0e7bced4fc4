# SPDX-License-Identifier: Apache-2.0
"""Versions of models, as frozen values.

Must not know SQL or wire formats. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

UNKNOWN_URI: Final = "unknown"
"""The name of a URI that was given without a name."""
_NUMBER = re.compile("[0-9]{1,18}")


class ModelVersionReference(NamedTuple):
    """A reference to a model version in a request: its number or an alias."""

    text: str
    is_alias: bool

    @property
    def number(self) -> int | None:
        """The requested version number; None for an alias, or if the reference is not an integer."""
        return int(self.text) if not self.is_alias and _NUMBER.fullmatch(self.text) else None


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a model: its URIs by name, and the aliases that point to it."""

    version: int
    comment: str | None
    properties: Mapping[str, str]
    uris: Mapping[str, str]
    aliases: tuple[str, ...]
    created_by: str = ""
    created_at: int = 0
    modified_by: str | None = None
    modified_at: int | None = None
