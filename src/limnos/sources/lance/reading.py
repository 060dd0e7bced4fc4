"""Reads Lance tables with Lance's own library, and says in our words what was wrong.

May import Lance's library, `model` and this room. Runs in a process of its own: the library starts threads, maps much memory, and is
not fit for a process that forks. Its failures are told apart by their texts, as there is nothing else.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import lance
import msgspec

from limnos.model.errors import BadRequest, InvalidTable, NotFound, StorageFailed
from limnos.sources.lance.questions import Describe, Described
from limnos.sources.lance.schemas import fields_of, logical_fields_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limnos.model.errors import LimnosError

NO_TABLE = re.compile(r"Dataset at path .* was not found|Not found: .*_versions", re.DOTALL)
NO_TAG = re.compile(r"tag .* does not exist", re.IGNORECASE)
DAMAGED = re.compile(r"corrupt|Invalid manifest|magic|protobuf|decode|File .* too small|unexpected", re.IGNORECASE)
REMOTE = re.compile(r"(?!file:)[a-z0-9+]+://", re.IGNORECASE)
"""On a local disk what cannot be read is damaged; elsewhere it may be the way there."""
_ROWS = frozenset({"data", "_indices"})
REFUSED = re.compile(
    r"access ?denied|forbidden|permission|credential|Unauthenticated|status.{0,10}(401|403)", re.IGNORECASE
)


def describe(asked: Describe) -> Described | None:
    """Describe a table; None when nothing was written to its location yet.

    Raises NotFound (version, tag, branch), InvalidTable, StorageFailed.
    """
    found = opened(asked.location, asked.options)
    if found is None:
        _refuse_absent(asked)
        return None
    found = at(found, asked)
    schema = found.schema
    return Described(
        version=found.version,
        fields=msgspec.Raw(msgspec.json.encode(fields_of(schema))),
        logical_fields=msgspec.Raw(msgspec.json.encode(logical_fields_of(schema))),
        schema_metadata=texts_of(schema.metadata),
        metadata={str(key): str(value) for key, value in found.metadata.items()},
        stats=_stats_of(found),
    )


def _stats_of(found: lance.LanceDataset) -> dict[str, int]:
    told: dict[str, Any] = dict(found.stats.dataset_stats())
    return {key: int(told[key]) for key in ("num_deleted_rows", "num_fragments") if key in told}


def _refuse_absent(asked: Describe) -> None:
    if asked.version is not None:
        raise _no_version(asked.version)
    if asked.tag is not None:
        raise NotFound(asked.tag, kind="tag")


def opened(location: str, options: dict[str, str]) -> lance.LanceDataset | None:
    """Open a table at its latest version; None when there is none. Raises InvalidTable for one whose files lie elsewhere."""
    if not REMOTE.match(location):
        _refuse_strays(location.removeprefix("file://"))
    with said(location):
        try:
            return lance.dataset(location, storage_options=options or None)
        except ValueError as error:
            if NO_TABLE.search(str(error)):
                return None
            raise


def _refuse_strays(path: str) -> None:
    """Refuse a local table of which a link leads out: who may lay files below a warehouse must not have others read."""
    own = os.path.realpath(path)
    for link in _links(path):
        if os.path.commonpath([own, os.path.realpath(link)]) != own:
            raise InvalidTable(
                f"The table at {path} has a link that leads out of it, {link}: put the file itself there, or deregister the table"
            )


def _links(directory: str) -> Iterator[str]:
    """List the symbolic links in a table's directory and below, those among its rows left out, which nobody reads here."""
    try:
        with os.scandir(directory) as entries:
            found = list(entries)
    except OSError:
        return  # the library says what is wrong with it
    for entry in found:
        if entry.is_symlink():
            yield entry.path
        elif entry.is_dir() and entry.name not in _ROWS:
            yield from _links(entry.path)


def at(found: lance.LanceDataset, asked: Describe) -> lance.LanceDataset:
    """Go to the version, tag or branch that is asked for. Raises NotFound, BadRequest."""
    if asked.tag is not None and (asked.version is not None or asked.branch is not None):
        raise BadRequest("A tag says which version of which branch is meant: leave out version and branch, or the tag")
    if asked.tag is not None:
        if asked.tag not in found.tags.list():
            raise NotFound(asked.tag, kind="tag")
        return _checked_out(found, asked.tag, missing=NotFound(asked.tag, kind="tag"))
    if asked.branch is not None:
        if asked.branch not in found.branches.list():
            raise NotFound(asked.branch, kind="branch")
        missing = NotFound(asked.branch, kind="branch") if asked.version is None else _no_version(asked.version)
        return _checked_out(found, (asked.branch, asked.version), missing=missing)
    if asked.version is None or asked.version == found.version:
        return found
    return _checked_out(found, asked.version, missing=_no_version(asked.version))


def _checked_out(
    found: lance.LanceDataset, reference: int | str | tuple[str | None, int | None], *, missing: NotFound
) -> lance.LanceDataset:
    with said(found.uri):
        try:
            return found.checkout_version(reference)
        except (ValueError, OSError, RuntimeError) as error:
            if NO_TABLE.search(str(error)) or NO_TAG.search(str(error)) or "was not found" in str(error):
                raise missing from error
            raise


def _no_version(version: int) -> NotFound:
    return NotFound(str(version), kind="version")


@contextmanager
def said(location: str) -> Iterator[None]:
    """Turn the library's failures into ours."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise _failure_of(location, str(error)) from error


def _failure_of(location: str, text: str) -> LimnosError:
    brief = text.split(", /", 1)[0][:300]
    if REFUSED.search(text):
        return StorageFailed(f"The storage refused to read {location}: check the catalog's credentials ({brief})")
    if DAMAGED.search(text) or not REMOTE.match(location):
        return InvalidTable(
            f"At {location} is no Lance table that can be read ({brief}): restore its files, or deregister it"
        )
    return StorageFailed(f"The table at {location} could not be read ({brief})")
