# SPDX-License-Identifier: Apache-2.0
"""Opens and creates Lance tables with managed versions: the library commits to the server instead of to the table's
files.

Must not know the wire protocol. Runs in a worker process. The newest version comes with the request, so the first
commit needs no callback before it. After it, each lookup calls back, because another client may have committed: the
library then retries on the newer version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import lance
import msgspec
from lance_namespace import DeclareTableResponse, DescribeTableResponse, LanceNamespace
from lance_namespace.errors import (
    ConcurrentModificationError,
    InternalError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
)

from limnos.rooms.lance.sources.callbacks import CallRefusal, call_parent

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_namespace import DeclareTableRequest, DescribeTableRequest

    from limnos.rooms.lance.sources.questions import LanceQuestion

TABLE: Final = ["table"]
"""The table's id in the library, whose namespace has only this table."""
_FAILURES: Final = {
    "conflict": ConcurrentModificationError,
    "version": TableVersionNotFoundError,
    "branch": TableBranchNotFoundError,
}
Json = dict[str, Any]


class ManagedVersions(LanceNamespace):
    """A Lance namespace of one table, by which Lance's library reads and commits the table's versions at the server."""

    def __init__(self, question: LanceQuestion) -> None:
        self._location = question.location
        self._options = question.options or None
        self._newest = question.kept or {}
        self._has_committed = False

    def namespace_id(self) -> str:
        """Return `limnos:` and the table's location, by which the library distinguishes namespaces."""
        return f"limnos:{self._location}"

    def describe_table(self, request: DescribeTableRequest) -> DescribeTableResponse:
        """Return the table's location, which the server sent with the request."""
        del request
        return DescribeTableResponse(location=self._location, managed_versioning=True, storage_options=self._options)

    def declare_table(self, request: DeclareTableRequest) -> DeclareTableResponse:
        """Return the location of the table, which the server has already declared."""
        del request
        return DeclareTableResponse(location=self._location, managed_versioning=True, storage_options=self._options)

    def list_table_versions(self, request: Any) -> Json:  # type: ignore[override]  # noqa: ANN401 - the library sends and takes maps here
        """List the table's versions. Before the first commit, the newest version is the one in the request, without a
        callback.
        """
        branch = request.get("branch") or ""
        if not self._has_committed and request.get("limit") == 1 and (branch in self._newest or not branch):
            newest = self._newest.get(branch)
            return {"versions": [] if newest is None else [msgspec.to_builtins(newest)]}
        return _call("list", request)

    def describe_table_version(self, request: Any) -> Json:  # type: ignore[override]  # noqa: ANN401 - as above
        """Return the description of one version by its number."""
        return _call("describe", request)

    def create_table_version(self, request: Any) -> Json:  # type: ignore[override]  # noqa: ANN401 - as above
        """Commit a version by a callback to the server. A refusal raises the library's error for its kind."""
        self._has_committed = True
        return _call("create", request)


def _call(name: str, request: Any) -> Json:  # noqa: ANN401 - as above
    try:
        return call_parent(name, {key: value for key, value in request.items() if value is not None})
    except CallRefusal as error:
        _raise(error)


def _raise(error: CallRefusal) -> NoReturn:
    raise _FAILURES.get(error.kind, InternalError)(str(error)) from error


def open_managed(question: LanceQuestion) -> lance.LanceDataset:
    """Open a table at its newest version for a change."""
    return lance.dataset(namespace_client=ManagedVersions(question), table_id=TABLE)


def create_managed(question: LanceQuestion, reader: pa.RecordBatchReader) -> lance.LanceDataset:
    """Create a table by writing its first version, which is committed to the server."""
    return lance.write_dataset(reader, namespace_client=ManagedVersions(question), table_id=TABLE, mode="create")
