# SPDX-License-Identifier: Apache-2.0
"""Staged versions of a Lance table: written completely, and committed by the run's publishing transaction only.

Lance's library commits to a table whose versions the server keeps in two steps: it writes the manifest under a name of
its own, then it asks the namespace to commit that manifest. `StagingNamespace` answers this request itself and notes
the version, so each change of the library (rows, merges, indices) becomes one more staged version. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import lance_namespace as protocol
import pyarrow as pa
from lance.fragment import FragmentMetadata
from lance_namespace import LanceNamespace

from limnos.model.errors import InvalidTable
from limnos.names import display
from limnos.names.hidden_segments import has_foreign_path
from limnos.pipeline.lance_checkpoints import checkpoint_changes
from limnos.pipeline.outcomes import StagedVersion

if TYPE_CHECKING:
    from limnos.client.values import LanceTable
    from limnos.spark.lance.server_access import ServerAccess

Fields = Any
"""A request as the compiled part of Lance's library passes it: a mapping of its fields.

It takes mappings as answers.
"""
Answer = Any


class StagingNamespace(LanceNamespace):
    """A namespace of one table at a version: it notes new versions in `staged`, and the server does not learn of them.

    It never resolves a staged version, because Lance's library would then give the manifest its final name.
    """

    def __init__(self, server: LanceNamespace, *, version: int | None) -> None:
        self._server = server
        self._version = version
        self.staged: list[StagedVersion] = []

    def namespace_id(self) -> str:
        """Return the identity of the namespace, which Lance's library uses for its caches."""
        return f"limnos staging {id(self)}"

    def describe_table(self, request: Fields) -> Answer:
        """Return the server's description, with fresh credentials for the table's files."""
        if isinstance(request, protocol.DescribeTableRequest):
            return self._server.describe_table(request)
        described = self._server.describe_table(protocol.DescribeTableRequest(**dict(request)))
        return described.model_dump()

    def list_table_versions(self, request: Fields) -> Answer:
        """Return the version from which the staged ones begin. Raises RuntimeError once there are staged versions."""
        self._require_none_staged()
        if self._version is None:
            return {"versions": []}
        return {"versions": [self._describe_version(request["id"])["version"]]}

    def describe_table_version(self, request: Fields) -> Answer:
        """Return the version from which the staged ones begin. Raises RuntimeError for any other version."""
        if request.get("version") != self._version:
            raise RuntimeError(f"version {request.get('version')} was asked for, and only {self._version} is there")
        return self._describe_version(request["id"])

    def create_table_version(self, request: Fields) -> Answer:
        """Note a staged version."""
        size, e_tag = request.get("manifest_size"), request.get("e_tag")
        staged_version = StagedVersion(
            version=int(request["version"]),
            manifest_path=str(request["manifest_path"]),
            manifest_size=None if size is None else int(size),
            e_tag=None if e_tag is None else str(e_tag),
        )
        self.staged.append(staged_version)
        version = protocol.TableVersion(version=staged_version.version, manifest_path=staged_version.manifest_path)
        return protocol.CreateTableVersionResponse(version=version).model_dump()

    def _describe_version(self, table_id: list[str]) -> Answer:
        # Unlike the other calls, pylance's client takes and returns mappings here.
        server: Any = self._server
        return server.describe_table_version({"id": list(table_id), "version": self._version})

    def _require_none_staged(self) -> None:
        if self.staged:
            raise RuntimeError("staged versions are not resolved")


@dataclass(slots=True, kw_only=True)
class StagedTable:
    """A Lance table at the version where a step begins, and the versions that the step stages."""

    path: tuple[str, ...]
    location: str
    base: int | None
    """The version where the step begins; None for a table without data."""
    options: dict[str, str]
    namespace: StagingNamespace
    dataset: lance.LanceDataset | None = None
    """The table at its newest staged version, or at `base`; None for a table without data."""

    @property
    def staged(self) -> tuple[StagedVersion, ...]:
        """The staged versions, in ascending order."""
        return tuple(self.namespace.staged)

    @property
    def head(self) -> int | None:
        """The newest staged version, or `base`."""
        return self.namespace.staged[-1].version if self.namespace.staged else self.base

    def overwrite(self, schema: pa.Schema, fragments: list[FragmentMetadata]) -> None:
        """Stage a version whose rows are those of `fragments` and no others."""
        operation = lance.LanceOperation.Overwrite(schema, fragments)
        if self.dataset is not None:
            self._commit(self.dataset, operation)
            return
        self.dataset = lance.LanceDataset.commit(
            self.location,
            operation,
            namespace_client=self.namespace,
            table_id=list(self.path),
            namespace_client_managed_versioning=True,
            storage_options=self.options or None,
        )

    def append(self, fragments: list[FragmentMetadata]) -> None:
        """Stage a version with the rows of `fragments` in addition. Without fragments nothing is staged."""
        if fragments and self.dataset is not None:
            self._commit(self.dataset, lance.LanceOperation.Append(fragments))

    def update(self, fragments: list[FragmentMetadata], *, updated: list[FragmentMetadata], removed: list[int]) -> None:
        """Stage a version with the rows of `fragments` in addition, with `updated` in place of fragments of the same
        numbers, and without the fragments `removed`.
        """
        if self.dataset is not None:
            operation = lance.LanceOperation.Update(
                removed_fragment_ids=removed, updated_fragments=updated, new_fragments=fragments
            )
            self._commit(self.dataset, operation)

    def set_checkpoint(self, checkpoint: Mapping[str, str] | None) -> None:
        """Stage a version with another checkpoint in its configuration, or without one. A checkpoint of the same inputs
        and definition stages nothing.
        """
        if self.dataset is None:
            return
        if changes := checkpoint_changes(self.dataset.config(), checkpoint):
            updates = lance.LanceOperation.UpdateMap(updates=changes, replace=False)
            self._commit(self.dataset, lance.LanceOperation.UpdateConfig(config_updates=updates))

    def _commit(self, dataset: lance.LanceDataset, operation: lance.LanceOperation.BaseOperation) -> None:
        # Without retries: nobody else commits to this namespace.
        self.dataset = lance.LanceDataset.commit(
            dataset, operation, read_version=int(dataset.version), storage_options=self.options or None, max_retries=0
        )


def open_staged(access: ServerAccess, table: LanceTable) -> StagedTable:
    """Open a table to stage versions after its newest one, as the client has just loaded it.

    Raises InvalidTable for a table with files outside of its location.
    """
    namespace = StagingNamespace(access.namespace(), version=table.version)
    result = StagedTable(
        path=tuple(table.path),
        location=table.location,
        base=table.version,
        options=dict(table.storage_options),
        namespace=namespace,
    )
    if table.version is not None:
        dataset = lance.dataset(namespace_client=namespace, table_id=list(table.path), version=table.version)
        if has_foreign_path(table.location, [str(each.path) for each in dataset.base_paths().values()]):
            raise InvalidTable(
                f"{display.render(table.path)} has files in other places than its location: copy it whole"
            )
        result.dataset = dataset
    return result
