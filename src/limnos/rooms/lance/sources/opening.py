# SPDX-License-Identifier: Apache-2.0
"""Opens Lance tables: for reading, at any version, and for writing. All writes open their table here.

Must not know the wire protocol. Runs in a worker process: the library starts threads, maps much memory, and is unsafe
in a process that forks.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import lance

from limnos.model.errors import BadRequest, InvalidTable, LimnosError, NotFound
from limnos.names.hidden_segments import has_dot_segments
from limnos.rooms.lance.sources.library_errors import NO_TABLE, NO_TAG, REMOTE, translate_library_errors
from limnos.rooms.lance.sources.managed_versions import open_managed
from limnos.rooms.lance.sources.questions import LanceQuestion

_ROWS: Final = frozenset({"data", "_indices"})


def open_latest(location: str, options: dict[str, str], *, rows: bool = False) -> lance.LanceDataset | None:
    """Open a table at its latest version; None if there is none.

    Args:
        location: The table's directory.
        options: Lance's storage options.
        rows: Whether rows will be read; if so, symbolic links among the data files are refused, too.

    Raises:
        InvalidTable: The table is damaged, or has files or links outside of its directory.
        StorageFailed: The storage cannot be read.
    """
    if not REMOTE.match(location):
        _refuse_outside_links(location.removeprefix("file://"), rows=rows)
    with translate_library_errors(location):
        try:
            dataset = lance.dataset(location, storage_options=options or None)
        except ValueError as error:
            if NO_TABLE.search(str(error)):
                return None
            raise
    return _refuse_bases(dataset, location)


def _open_at(location: str, options: dict[str, str], *, version: int, rows: bool) -> lance.LanceDataset | None:
    """Open a table at a version by that version's manifest, without listing the versions; None on failure.

    The caller then opens the latest version, which reports the cause.
    """
    if not REMOTE.match(location):
        _refuse_outside_links(location.removeprefix("file://"), rows=rows)
    try:
        with translate_library_errors(location):
            dataset = lance.dataset(location, version=version, storage_options=options or None)
    except LimnosError:
        return None
    return _refuse_bases(dataset, location)


def open_for_reading(question: LanceQuestion, *, rows: bool) -> lance.LanceDataset | None:
    """Open a table at the version, tag or branch of a request; None if the table has no data and the request names
    none.

    Raises NotFound (version, tag, branch), BadRequest for a tag together with a version or branch, InvalidTable for a
    damaged table, StorageFailed if the storage cannot be read.
    """
    if question.version is not None and question.tag is None and question.branch is None:
        dataset = _open_at(question.location, question.options, version=question.version, rows=rows)
        if dataset is not None:
            return dataset
    dataset = open_latest(question.location, question.options, rows=rows)
    if dataset is not None:
        return checkout_reference(dataset, question)
    if question.version is not None or question.tag is not None:
        raise no_data_error(question)
    return None


def _refuse_bases(dataset: lance.LanceDataset, location: str) -> lance.LanceDataset:
    """Return the dataset if its version has no files outside of the table's directory, else raise InvalidTable.

    Otherwise a writer of a manifest could read other tables' rows. A branch may use its table's files. Each version has
    its own manifest, so each opened version is checked. Lance opens a base path as a URL, so hidden dot segments count.
    """
    own_location = canonical_location(location)
    paths = [str(each.path) for each in dataset.base_paths().values()]
    if any(has_dot_segments(each) or not canonical_location(each).is_relative_to(own_location) for each in paths):
        raise InvalidTable(
            f"The table at {location} has files in other places: copy the whole table to one location, and register"
            " that"
        )
    return dataset


def canonical_location(location: str) -> PurePosixPath:
    """Return a location as a path without links or `..`. For an object store it begins with the scheme and bucket."""
    if REMOTE.match(location):
        scheme, _, rest = location.partition("://")
        return PurePosixPath(f"{scheme}:", posixpath.normpath(rest))
    return PurePosixPath(os.path.realpath(location.removeprefix("file://")))


def open_for_rows(question: LanceQuestion) -> lance.LanceDataset:
    """Open a table at the version of a request, to read rows. Raises NotFound, also if it has no data yet."""
    dataset = open_for_reading(question, rows=True)
    if dataset is None:
        raise no_data_error(question)
    return dataset


def open_for_writing(question: LanceQuestion) -> lance.LanceDataset:
    """Open a table for a change, on the branch of a request. Raises NotFound if it has no data yet."""
    if question.kept is None:
        return open_for_rows(question)
    if "" not in question.kept:
        raise no_data_error(question)
    if not REMOTE.match(question.location):
        _refuse_outside_links(question.location.removeprefix("file://"), rows=True)
    with translate_library_errors(question.location):
        return checkout_reference(_refuse_bases(open_managed(question), question.location), question)


def no_data_error(question: LanceQuestion) -> NotFound:
    """Return the NotFound error for a table that was declared but has no data yet."""
    if question.version is not None:
        return no_version_error(question.version)
    if question.tag is not None:
        return NotFound(question.tag, kind="tag")
    if question.branch is not None:
        return NotFound(question.branch, kind="branch")
    return NotFound("The table was declared and has no data yet: insert some first", kind="table")


def _refuse_outside_links(path: str, *, rows: bool) -> None:
    """Raise InvalidTable for a local table with a symbolic link to a path outside of its directory.

    Otherwise a writer of files below a warehouse could read other files of the machine.
    """
    real_path = os.path.realpath(path)
    for link in _links(path, rows=rows):
        if os.path.commonpath([real_path, os.path.realpath(link)]) != real_path:
            raise InvalidTable(
                f"The table at {path} has a link to a file outside of it, {link}: replace it by the file, or deregister"
                " the table"
            )


def _links(directory: str, *, rows: bool) -> Iterator[str]:
    """Yield the symbolic links in a table's directory at any depth; links in its data and indices only with `rows`."""
    try:
        with os.scandir(directory) as entries:
            results = list(entries)
    except OSError:
        return  # the library reports the error
    for entry in results:
        if entry.is_symlink():
            yield entry.path
        elif entry.is_dir() and (rows or entry.name not in _ROWS):
            yield from _links(entry.path, rows=rows)


def checkout_reference(dataset: lance.LanceDataset, question: LanceQuestion) -> lance.LanceDataset:
    """Return the dataset at the version, tag or branch of a request. Raises NotFound (version, tag, branch), BadRequest
    for a tag together with a version or branch.
    """
    if question.tag is not None and (question.version is not None or question.branch is not None):
        raise BadRequest("A tag determines version and branch: leave out version and branch, or the tag")
    if question.tag is not None:
        if question.tag not in dataset.tags.list():
            raise NotFound(question.tag, kind="tag")
        return _check_out(dataset, question, reference=question.tag, missing=NotFound(question.tag, kind="tag"))
    if question.branch is not None:
        if question.branch not in dataset.branches.list():
            raise NotFound(question.branch, kind="branch")
        missing = (
            NotFound(question.branch, kind="branch") if question.version is None else no_version_error(question.version)
        )
        return _check_out(dataset, question, reference=(question.branch, question.version), missing=missing)
    if question.version is None or question.version == dataset.version:
        return dataset
    return _check_out(dataset, question, reference=question.version, missing=no_version_error(question.version))


def _check_out(
    dataset: lance.LanceDataset,
    question: LanceQuestion,
    *,
    reference: int | str | tuple[str | None, int | None],
    missing: NotFound,
) -> lance.LanceDataset:
    with translate_library_errors(dataset.uri):
        try:
            return _refuse_bases(dataset.checkout_version(reference), question.location)
        except (ValueError, OSError, RuntimeError) as error:
            if NO_TABLE.search(str(error)) or NO_TAG.search(str(error)) or "was not found" in str(error):
                raise missing from error
            raise


def no_version_error(version: int) -> NotFound:
    """Build NotFound (kind `version`) for a version number of a Lance table."""
    return NotFound(str(version), kind="version")
