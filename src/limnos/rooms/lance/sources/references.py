# SPDX-License-Identifier: Apache-2.0
"""Lists, creates and deletes tags and branches of a Lance table.

Must not know the wire protocol. Runs in a worker process. Tags and branches are stored in the table's own files, even
if its versions are managed: the caller has checked that a managed version exists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from limnos.model.errors import AlreadyExists, BadRequest, InUse, LimnosError, NotFound
from limnos.rooms.lance.sources.library_errors import shorten_message, translate_library_errors
from limnos.rooms.lance.sources.opening import no_data_error, open_latest
from limnos.rooms.lance.sources.questions import BranchReference, TableReferences, TagReference

if TYPE_CHECKING:
    import lance

    from limnos.rooms.lance.sources.questions import BranchDrop, BranchMake, LanceQuestion, TagDrop, TagPut

_TAKEN: Final = re.compile(r"already exists", re.IGNORECASE)
_MISSING: Final = re.compile(r"(?:does|do) not exist|not found|NotFound", re.IGNORECASE)
_HELD: Final = re.compile(r"is referenced by|can ?not delete|dependent", re.IGNORECASE)
_NAME: Final = re.compile(r"[Ii]nvalid|must|characters|Ref is invalid")


def references(question: LanceQuestion) -> TableReferences:
    """List tags and branches; both empty for a table without data."""
    dataset = open_latest(question.location, question.options)
    if dataset is None:
        return TableReferences({}, {})
    with translate_library_errors(question.location):
        tags, branches = dataset.tags.list(), dataset.branches.list()
    return TableReferences(
        {name: TagReference(tag["version"], tag.get("branch"), tag.get("manifest_size")) for name, tag in tags.items()},
        {
            name: BranchReference(
                parent_version=branch["parent_version"],
                parent_branch=branch.get("parent_branch"),
                created_at=branch.get("create_at"),
                manifest_size=branch.get("manifest_size"),
                metadata=dict(branch.get("metadata") or {}),
            )
            for name, branch in branches.items()
        },
    )


def tag_put(request: TagPut) -> None:
    """Create a tag, or move it with `replaces`. Raises AlreadyExists, NotFound (tag, version, branch), BadRequest for
    an invalid name.
    """
    dataset = _open(request)
    existing_tags = dataset.tags.list()
    if request.replaces and request.name not in existing_tags:
        raise NotFound(request.name, kind="tag")
    if not request.replaces and request.name in existing_tags:
        raise AlreadyExists(request.name, kind="tag")
    if request.at_branch is not None and request.at_branch not in dataset.branches.list():
        raise NotFound(request.at_branch, kind="branch")
    put = dataset.tags.update if request.replaces else dataset.tags.create
    try:
        with translate_library_errors(request.location):
            put(request.name, (request.at_branch, request.at_version))
    except LimnosError as error:
        raise _convert_error(error, name=request.name, kind="tag", missing=str(request.at_version)) from error


def tag_drop(drop: TagDrop) -> None:
    """Delete a tag. Raises NotFound."""
    dataset = _open(drop)
    if drop.name not in dataset.tags.list():
        raise NotFound(drop.name, kind="tag")
    with translate_library_errors(drop.location):
        dataset.tags.delete(drop.name)


def branch_make(make: BranchMake) -> None:
    """Create a branch at a version. Raises AlreadyExists, NotFound (version, branch), BadRequest for an invalid
    name.
    """
    dataset = _open(make)
    existing_branches = dataset.branches.list()
    if make.name in existing_branches:
        raise AlreadyExists(make.name, kind="branch")
    if make.from_branch is not None and make.from_branch not in existing_branches:
        raise NotFound(make.from_branch, kind="branch")
    try:
        with translate_library_errors(make.location):
            dataset.create_branch(make.name, (make.from_branch, make.from_version))
    except LimnosError as error:
        raise _convert_error(error, name=make.name, kind="branch", missing=str(make.from_version)) from error


def branch_drop(drop: BranchDrop) -> None:
    """Delete a branch with its files. Raises NotFound, InUse if a tag or another branch depends on it."""
    dataset = _open(drop)
    if drop.name not in dataset.branches.list():
        raise NotFound(drop.name, kind="branch")
    try:
        with translate_library_errors(drop.location):
            dataset.branches.delete(drop.name)
    except LimnosError as error:
        raise _convert_error(error, name=drop.name, kind="branch", missing=drop.name) from error


def _open(question: LanceQuestion) -> lance.LanceDataset:
    dataset = open_latest(question.location, question.options)
    if dataset is None:
        raise no_data_error(question)
    return dataset


def _convert_error(error: LimnosError, *, name: str, kind: Literal["tag", "branch"], missing: str) -> LimnosError:
    """Return the error to raise: InUse, AlreadyExists, BadRequest or NotFound by the library's message, else
    `error`.
    """
    text = str(error.__cause__ or error)
    if _HELD.search(text):
        return InUse(
            f"{kind.capitalize()} {name} is still needed ({shorten_message(text)}): delete its dependents first",
            kind=kind,
        )
    if _TAKEN.search(text):
        return AlreadyExists(name, kind=kind)
    if _NAME.search(text):
        return BadRequest(
            f"{name[:80]!r} is not a name of a {kind} ({shorten_message(text)}): letters, digits, '.', '-' and '_'"
        )
    return NotFound(missing, kind="version") if _MISSING.search(text) else error
