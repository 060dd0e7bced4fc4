"""What a process that reads Lance tables is asked, and what it answers, as JSON on the wire.

May import msgspec and `model`. Must not import Lance's library: a serving process imports this.
"""

from __future__ import annotations

from typing import Final

import msgspec

DESCRIBE: Final = "describe"
MODULE: Final = "limnos.sources.lance.worker"
"""The module that such a process runs."""


class Described(msgspec.Struct, frozen=True):
    """A table at one of its versions; `fields` and `logical_fields` are its schema with Arrow's and with Lance's names of types."""

    version: int
    fields: msgspec.Raw
    logical_fields: msgspec.Raw
    schema_metadata: dict[str, str]
    metadata: dict[str, str]
    stats: dict[str, int]


class Describe(msgspec.Struct, frozen=True):
    """Describe the table at a location: its latest version, or one by number, of a branch, or by tag."""

    location: str
    options: dict[str, str]
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
