# SPDX-License-Identifier: Apache-2.0
"""Verification of a Lance table: the manifest of its version, and the files of its fragments.

Must not know Spark. Lance's library reads the manifest, unless a file of it is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from limnos.formats.lance_manifests import V1, V2, VERSIONS, manifest_name
from limnos.model.errors import InvalidTable
from limnos.spark.verification.findings import StorageFinding, in_parts
from limnos.spark.verification.storage import DIRECTORY, MISSING, files_for

if TYPE_CHECKING:
    from limnos.client.values import LanceTable

_FILES_AT_A_TIME: Final = 500
_S3_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "s3.access-key-id": ("aws_access_key_id", "access_key_id"),
    "s3.secret-access-key": ("aws_secret_access_key", "secret_access_key"),
    "s3.session-token": ("aws_session_token", "session_token"),
    "s3.endpoint": ("aws_endpoint", "endpoint"),
    "s3.region": ("aws_region", "region"),
}
"""Names of properties, and those of Lance's options for the same."""


class _FragmentFile(NamedTuple):
    what: str
    path: str
    size: int | None


class LanceCheck:
    """The check of the current version of a Lance table."""

    def __init__(self, table: LanceTable) -> None:
        self.findings: list[StorageFinding] = []
        self.files = 0
        self._table = table
        self._storage = files_for([table.location], _properties_of(table.storage_options))

    def run(self) -> None:
        """Check the manifest, and the files of the fragments."""
        version = self._table.version
        if version is None:
            self._check_without_version()
            return
        names = [f"{self._table.location}/{VERSIONS}/{manifest_name(version, scheme)}" for scheme in (V2, V1)]
        states = self._storage.states(names)
        self.files += 1
        if all(each.size is None for each in states):
            self.findings.append(
                StorageFinding(finding="version manifest missing", file=names[0], expected=f"version {version}")
            )
            return
        try:
            files = list(self._fragment_files(version))
        except (OSError, ValueError, RuntimeError, InvalidTable) as error:
            finding = StorageFinding(finding="version manifest unreadable", file=names[0], actual=str(error))
            self.findings.append(finding)
            return
        for some in in_parts(files, _FILES_AT_A_TIME):
            self._check(some)

    def _check_without_version(self) -> None:
        """Check that a table without a version has no data: the server knows only of versions whose manifests exist."""
        location = f"{self._table.location}/{VERSIONS}"
        self.files += 1
        if self._storage.states([f"{self._table.location}/data"])[0].problem == DIRECTORY:
            actual = "data files, and no version"
            self.findings.append(StorageFinding(finding="version manifest missing", file=location, actual=actual))

    def _check(self, files: Sequence[_FragmentFile]) -> None:
        self.files += len(files)
        for each, state in zip(files, self._storage.states([each.path for each in files]), strict=True):
            expected = None if each.size is None else f"{each.size} bytes"
            if state.size is None:
                words = state.problem if state.problem == MISSING else f"is {state.problem}"
                self.findings.append(StorageFinding(finding=f"{each.what} {words}", file=each.path, expected=expected))
            elif each.size not in (None, state.size):
                words = "shorter" if state.size < (each.size or 0) else "longer"
                actual = f"{state.size} bytes"
                self.findings.append(
                    StorageFinding(finding=f"{each.what} {words}", file=each.path, expected=expected, actual=actual)
                )

    def _fragment_files(self, version: int) -> Iterator[_FragmentFile]:
        """Yield the files of the version's fragments. Raises InvalidTable for files elsewhere, and Lance's errors."""
        import lance  # noqa: PLC0415 - an optional library

        from limnos.spark.lance.reading import without_foreign_bases  # noqa: PLC0415 - it needs Lance's library

        table = self._table
        opened = lance.dataset(table.location, version=version, storage_options=table.storage_options or None)
        dataset: Any = without_foreign_bases(opened, table.location)
        for fragment in dataset.get_fragments():
            for file in fragment.data_files():
                yield _FragmentFile("fragment file", f"{table.location}/data/{file.path}", file.file_size_bytes)
            deletions = fragment.deletion_file()
            if deletions:
                yield _FragmentFile("deletion file", f"{table.location}/{str(deletions).lstrip('/')}", None)


def _properties_of(options: Mapping[str, str]) -> dict[str, str]:
    values = {name: next((options[key] for key in keys if options.get(key)), None) for name, keys in _S3_NAMES.items()}
    return {name: value for name, value in values.items() if value is not None}
