"""Lists, creates and deletes tags and branches of a Lance table.

May import Lance's library, `model` and this room. Must not know the wire. Runs in a worker process. Tags and branches
are kept in the table's own files, also if its versions are managed: the caller has checked that a managed version
exists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from limnos.model.errors import AlreadyExists, BadRequest, InUse, LimnosError, NotFound
from limnos.sources.lance.library_errors import shorten_message, translate_library_errors
from limnos.sources.lance.opening import no_data_error, open_latest
from limnos.sources.lance.questions import BranchReference, TableReferences, TagReference

if TYPE_CHECKING:
    import lance

    from limnos.sources.lance.questions import BranchDrop, BranchMake, LanceQuestion, TagDrop, TagPut

_TAKEN: Final = re.compile(r"already exists", re.IGNORECASE)
_MISSING: Final = re.compile(r"(?:does|do) not exist|not found|NotFound", re.IGNORECASE)
_HELD: Final = re.compile(r"is referenced by|can ?not delete|dependent", re.IGNORECASE)
_NAME: Final = re.compile(r"[Ii]nvalid|must|characters|Ref is invalid")


def references(asked: LanceQuestion) -> TableReferences:
    """List tags and branches; both empty for a table without data."""
    found = open_latest(asked.location, asked.options)
    if found is None:
        return TableReferences({}, {})
    with translate_library_errors(asked.location):
        tags, branches = found.tags.list(), found.branches.list()
    return TableReferences(
        {name: TagReference(tag["version"], tag.get("branch"), tag.get("manifest_size")) for name, tag in tags.items()},
        {
            name: BranchReference(
                branch["parent_version"], branch.get("parent_branch"), branch.get("create_at"), branch.get("manifest_size"),
                dict(branch.get("metadata") or {}),
            )
            for name, branch in branches.items()
        },
    )  # fmt: skip


def tag_put(asked: TagPut) -> None:
    """Create a tag, or move it with `replaces`. Raises AlreadyExists, NotFound (tag, version, branch), BadRequest."""
    found = _open(asked)
    there = found.tags.list()
    if asked.replaces and asked.name not in there:
        raise NotFound(asked.name, kind="tag")
    if not asked.replaces and asked.name in there:
        raise AlreadyExists(asked.name, kind="tag")
    if asked.at_branch is not None and asked.at_branch not in found.branches.list():
        raise NotFound(asked.at_branch, kind="branch")
    put = found.tags.update if asked.replaces else found.tags.create
    try:
        with translate_library_errors(asked.location):
            put(asked.name, (asked.at_branch, asked.at_version))
    except LimnosError as error:
        raise _why(error, name=asked.name, kind="tag", missing=str(asked.at_version)) from error


def tag_drop(asked: TagDrop) -> None:
    """Delete a tag. Raises NotFound."""
    found = _open(asked)
    if asked.name not in found.tags.list():
        raise NotFound(asked.name, kind="tag")
    with translate_library_errors(asked.location):
        found.tags.delete(asked.name)


def branch_make(asked: BranchMake) -> None:
    """Create a branch at a version. Raises AlreadyExists, NotFound (version, branch), BadRequest."""
    found = _open(asked)
    there = found.branches.list()
    if asked.name in there:
        raise AlreadyExists(asked.name, kind="branch")
    if asked.from_branch is not None and asked.from_branch not in there:
        raise NotFound(asked.from_branch, kind="branch")
    try:
        with translate_library_errors(asked.location):
            found.create_branch(asked.name, (asked.from_branch, asked.from_version))
    except LimnosError as error:
        raise _why(error, name=asked.name, kind="branch", missing=str(asked.from_version)) from error


def branch_drop(asked: BranchDrop) -> None:
    """Delete a branch with its files. Raises NotFound, InUse if a tag or another branch depends on it."""
    found = _open(asked)
    if asked.name not in found.branches.list():
        raise NotFound(asked.name, kind="branch")
    try:
        with translate_library_errors(asked.location):
            found.branches.delete(asked.name)
    except LimnosError as error:
        raise _why(error, name=asked.name, kind="branch", missing=asked.name) from error


def _open(asked: LanceQuestion) -> lance.LanceDataset:
    found = open_latest(asked.location, asked.options)
    if found is None:
        raise no_data_error(asked)
    return found


def _why(error: LimnosError, *, name: str, kind: str, missing: str) -> LimnosError:
    """Map an error about a name or its target."""
    text = str(error.__cause__ or error)
    if _HELD.search(text):
        return InUse(
            f"{kind.capitalize()} {name} is still needed ({shorten_message(text)}): delete what rests on it first",
            kind=kind,
        )
    if _TAKEN.search(text):
        return AlreadyExists(name, kind=kind)
    if _NAME.search(text):
        return BadRequest(
            f"{name[:80]!r} is no name of a {kind} ({shorten_message(text)}): letters, digits, '.', '-' and '_'"
        )
    return NotFound(missing, kind="version") if _MISSING.search(text) else error
