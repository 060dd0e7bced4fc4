# SPDX-License-Identifier: Apache-2.0
"""Verification of objects in a task: loads them from the server, checks their files, and yields rows in Arrow.

An object that cannot be read is a finding, and the others are still checked. Must not know Spark's sessions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from limnos.client.catalog.tables import LOADED_AT_ONCE
from limnos.client.errors import ClientError, ConflictError, NotFoundError, UnavailableError
from limnos.model.errors import LimnosError, UnsupportedOperation
from limnos.spark.batch_loads import load_batch
from limnos.spark.verification.findings import (
    NOT_CHECKED,
    NOTE,
    WARNING,
    ResultRow,
    StorageFinding,
    VerifiedObject,
    batch_of,
    file_row,
    finding_row,
    in_parts,
    object_row,
)
from limnos.spark.verification.storage import files_for, location_key
from limnos.spark.verification.tables import FINDINGS_MAX, MetadataCheck, places_of

if TYPE_CHECKING:
    import pyarrow as pa

    from limnos.client import Client
    from limnos.client.values import IcebergTableInfo, IcebergViewInfo, TableFinding
    from limnos.spark.lance.server_access import ServerAccess

    IcebergInfo = IcebergTableInfo | IcebergViewInfo

ROWS_AT_ONCE: Final = 1_000
COLUMNS: Final = ("id", "path", "kind", "format", "restricted", "metadata_location")
"""The columns of the system table `tables` that the check of an object needs."""
_READS_MAX: Final = 3
"""The number of times that an object is checked again because a commit changed it meanwhile."""
_LANCE: Final = "lance"
_MISSING_FILE: Final = "missing-file"
"""The code by which the server says that an object is there, and its metadata file is not."""
_WORDS: Final = {"file": "data file", "metadata": "metadata file", "statistics": "statistics file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationTask:
    """The function of a task, from batches of objects to batches of rows. Spark pickles it with the credential."""

    home: ServerAccess
    footers: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Check objects, and yield their rows. Raises UnavailableError if the server is not reachable."""
        with self.home.client() as client:
            verifier = ObjectVerifier(client, footers=self.footers)
            objects = (_object_of(row) for batch in batches for row in batch.to_pylist())
            rows = chain.from_iterable(map(verifier.rows_of_objects, in_parts(objects, LOADED_AT_ONCE)))
            for some in in_parts(rows, ROWS_AT_ONCE):
                yield batch_of(some)


def _object_of(row: dict[str, object]) -> VerifiedObject:
    texts = [None if row[name] is None else str(row[name]) for name in COLUMNS]
    number, path, kind, table_format, _, metadata_location = texts
    return VerifiedObject(
        id=int(number or 0),
        path=path or "",
        kind=kind or "",
        format=table_format,
        restricted=bool(row["restricted"]),
        metadata_location=metadata_location or "",
    )


class ObjectVerifier:
    """Checks objects with one client."""

    def __init__(self, client: Client, *, footers: bool = False) -> None:
        self._client, self._footers = client, footers

    def rows_of_objects(self, targets: Sequence[VerifiedObject]) -> Iterator[ResultRow]:
        """Yield the rows of some objects, which are loaded by one request for each kind as far as possible."""
        some = [each for each in targets if _is_loaded(each)]
        tables = load_batch(self._client.tables.load_each, [each.path for each in some if not _is_view(each)])
        views = load_batch(self._client.views.load_each, [each.path for each in some if _is_view(each)])
        for each in targets:
            loaded_object = views.pop(each.path, None) if _is_view(each) else tables.pop(each.path, None)
            yield from self.rows(each, loaded_object)

    def rows(self, target: VerifiedObject, loaded: IcebergInfo | None = None) -> Iterator[ResultRow]:
        """Yield the rows of an object: its current files, findings, and itself. A dropped object has no rows.

        `loaded` is the object as it was a moment ago. Raises UnavailableError if the server is not reachable.
        """
        findings: list[StorageFinding] = []
        try:
            count = yield from self._check_object(target, findings, loaded=loaded)
        except NotFoundError as error:
            if error.code != _MISSING_FILE:
                return
            findings.append(StorageFinding(finding="metadata file missing", file=target.metadata_location))
            count = 1
        except UnavailableError as error:
            if error.status == 0:
                raise
            count = self._add_unchecked(error, findings)
        except Exception as error:  # noqa: BLE001 - whatever a library raises about hostile files concerns this object alone
            count = self._add_unchecked(error, findings)
        yield from (finding_row(target, each) for each in findings)
        yield object_row(target, count)

    @staticmethod
    def _add_unchecked(error: Exception, findings: list[StorageFinding]) -> None:
        reason = error.message if isinstance(error, (ClientError, LimnosError)) else f"{type(error).__name__}: {error}"
        findings.append(StorageFinding(finding=NOT_CHECKED, actual=reason, severity=WARNING))

    def _check_object(
        self, target: VerifiedObject, findings: list[StorageFinding], *, loaded: IcebergInfo | None
    ) -> Generator[ResultRow, None, int | None]:
        """Check an object, add its findings, and return the number of checked files; None if it was not checked."""
        if target.restricted:
            reason = "your reads of it are restricted, so you get no files"
            findings.append(StorageFinding(finding=NOT_CHECKED, actual=reason, severity=NOTE))
            return None
        if target.format == _LANCE:
            return self._lance_table(target, findings)
        return (yield from self._iceberg_object(target, findings, loaded=loaded))

    def _lance_table(self, target: VerifiedObject, findings: list[StorageFinding]) -> int:
        from limnos.spark.verification.lance_tables import LanceCheck  # noqa: PLC0415 - it needs Lance's library

        try:
            check = LanceCheck(self._client.lance.load(target.path))
        except ConflictError as error:  # of a table whose versions the server manages
            findings.append(StorageFinding(finding="version manifest missing", actual=error.message))
            return 1
        check.run()
        findings += check.findings
        return check.files

    def _iceberg_object(
        self, target: VerifiedObject, findings: list[StorageFinding], *, loaded: IcebergInfo | None
    ) -> Generator[ResultRow, None, int | None]:
        """Check an Iceberg table or view, again if it has findings and was changed meanwhile."""
        is_view = _is_view(target)
        load = self._client.views.load if is_view else partial(self._client.tables.load, snapshots="refs")
        info = load(target.path) if loaded is None else loaded
        for _ in range(_READS_MAX):
            try:
                check = self._check_of(info, is_view=is_view)
            except UnsupportedOperation as error:
                return self._server_check(target, findings, reason=error.message, is_view=is_view)
            check.check_metadata()
            if not is_view:
                for key in check.check_files(footers=self._footers):
                    yield file_row(target, key)
            if not check.findings:
                break
            latest = load(target.path)
            if latest.metadata_location == info.metadata_location:
                break
            info = latest
        findings += check.findings
        return check.files

    def _check_of(self, info: IcebergInfo, *, is_view: bool) -> MetadataCheck:
        """Return the check of a loaded object. Raises UnsupportedOperation if its files cannot be read here."""
        roots = places_of(info.metadata)
        is_local = location_key(roots[0]).startswith("file:")
        properties = {} if is_local or is_view else self._client.tables.credentials(info.path)
        storage = files_for(roots, properties)
        return MetadataCheck(storage, info.metadata, metadata_location=info.metadata_location or "")

    def _server_check(
        self, target: VerifiedObject, findings: list[StorageFinding], *, reason: str, is_view: bool
    ) -> int | None:
        """Let the server check a table whose files this process cannot read."""
        if is_view:
            findings.append(StorageFinding(finding=NOT_CHECKED, actual=reason, severity=NOTE))
            return None
        result = self._client.table_checks.check(target.path)
        findings += map(_convert_server_finding, result.findings[:FINDINGS_MAX])
        return result.files


def _is_view(target: VerifiedObject) -> bool:
    return target.kind == "view"


def _is_loaded(target: VerifiedObject) -> bool:
    """Return whether the verification loads the metadata of an object: not of Lance tables and restricted ones."""
    return not target.restricted and target.format != _LANCE


def _convert_server_finding(each: TableFinding) -> StorageFinding:
    """Convert a finding of the server's check."""
    what = _WORDS.get(each.kind, each.kind)
    if each.problem == "size" and each.size_told is not None and each.size_found is not None:
        words = "shorter" if each.size_found < each.size_told else "longer"
        expected, actual = f"{each.size_told} bytes", f"{each.size_found} bytes"
        return StorageFinding(finding=f"{what} {words}", file=each.file, expected=expected, actual=actual)
    return StorageFinding(finding=f"{what} {each.problem}", file=each.file)
