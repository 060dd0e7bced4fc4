# SPDX-License-Identifier: Apache-2.0
"""The table of a scan: its schema and specs, which are used to prune manifests and files.

Must not know storage.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
    residual_evaluator_of,
)
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import KeyDefaultDict
from pyiceberg.types import NestedField

from limnos.formats.scans.deletes import partition_key_of
from limnos.formats.scans.field_lookup import FieldLookup
from limnos.formats.scans.filters import ScanFilter, expression_of, filter_of, residual_of
from limnos.formats.scans.request import Json, ScanRequest, ScanScope
from limnos.formats.scans.values import partition_encoder
from limnos.model.errors import BadRequest, InvalidTable

_KNOWN: Final = frozenset(
    {
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "binary",
        "unknown",
    }
)
_WITH_NUMBERS: Final = ("decimal", "fixed")
METADATA_COLUMNS: Final = frozenset(
    {
        "_change_ordinal",
        "_change_type",
        "_commit_snapshot_id",
        "_deleted",
        "_file",
        "_last_updated_sequence_number",
        "_partition",
        "_pos",
        "_row_id",
        "_spec_id",
    }
)
"""Columns that readers add to rows (Iceberg's `MetadataColumns`). Engines select them to change rows."""


class ScannedTable:
    """The schema, specs and bound filter of one scan.

    Raises BadRequest for a filter or names that do not fit the table.
    """

    def __init__(self, aim: ScanScope, request: ScanRequest) -> None:
        self.schema = _schema_of(aim.schema)
        self.case_sensitive = request.case_sensitive
        today = None if aim.today is None else _schema_of(aim.today)
        self._naming = FieldLookup(self.schema, today=today, case_sensitive=request.case_sensitive)
        self.filter: ScanFilter = filter_of(bytes(request.filter), self.schema, naming=self._naming)
        self._expression = expression_of(self.filter)
        self._specs = {spec.spec_id: spec for spec in map(_spec_of, aim.specs)}
        self._sources = _sources_of(aim.schemas)
        self.statistics = {} if request.stats_fields is None else self._ids(request.stats_fields)
        self.selected = None if request.select is None else self._ids(request.select)
        self.partitions = KeyDefaultDict(self._partitions)
        self.spelling = KeyDefaultDict(self._spelling)
        self._projected = KeyDefaultDict(self._project)
        self._of_lists = KeyDefaultDict(self._lists)
        self._of_places = KeyDefaultDict(self._places)
        self._residuals: dict[tuple[object, ...], ScanFilter] = {}

    def _ids(self, names: list[str]) -> dict[int, str]:
        """Return the names of fields by id. Raises BadRequest for an unknown name."""
        results: dict[int, str] = {}
        for name in names:
            try:
                field = self._naming.field(name)
            except ValueError:
                if name in METADATA_COLUMNS:
                    continue
                raise BadRequest(f"The scan names a field that the table does not have: {name[:100]!r}") from None
            if field is not None:
                results[field.field_id] = name
        return results

    @property
    def is_open(self) -> bool:
        """Return whether the filter is a constant that is true for every row."""
        return isinstance(self._expression, AlwaysTrue)

    @cached_property
    def whole(self) -> frozenset[int]:
        """The ids of the unpartitioned specs."""
        return frozenset(
            number
            for number, spec in self._specs.items()
            if all(isinstance(field.transform, VoidTransform) for field in spec.fields)
        )

    def spec(self, number: int) -> PartitionSpec:
        """Return a partition spec by its id. Raises InvalidTable if there is none."""
        spec = self._specs.get(number)
        if spec is None:
            raise InvalidTable(f"A manifest of the table is of partition spec {number}, which the table does not have")
        return spec

    def _partitions(self, number: int) -> Schema:
        """Return the partition type of a spec as a schema; types of dropped source columns come from older schemas."""
        return Schema(*self.spec(number).partition_type(self._sources).fields)

    def _project(self, number: int) -> BooleanExpression:
        return inclusive_projection(self.schema, self.spec(number), self.case_sensitive)(self._expression)

    def _lists(self, number: int) -> Callable[[ManifestFile], bool]:
        return manifest_evaluator(self.spec(number), self._sources, self._projected[number], self.case_sensitive)

    def _places(self, number: int) -> Callable[[DataFile], bool]:
        evaluate = expression_evaluator(self.partitions[number], self._projected[number], self.case_sensitive)
        return lambda file: evaluate(file.partition)

    @cached_property
    def _of_bounds(self) -> _InclusiveMetricsEvaluator:
        return _InclusiveMetricsEvaluator(self.schema, self._expression, self.case_sensitive)

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may contain a file with a matching row, by its partition summaries."""
        return self.is_open or _true_on_error(lambda: self._of_lists[manifest.partition_spec_id](manifest))

    def may_match(self, file: DataFile) -> bool:
        """Return whether a data file may contain a matching row, by its partition and column bounds."""
        if isinstance(self._expression, AlwaysFalse):
            return False
        if self.is_open:
            return True
        return _true_on_error(lambda: self._of_places[file.spec_id](file)) and _true_on_error(
            lambda: self._of_bounds.eval(file)
        )

    def residual(self, file: DataFile) -> ScanFilter:
        """Return the filter's residual for a file's partition."""
        place = partition_key_of(file)
        residual = self._residuals.get(place)
        if residual is None:
            residual = self._residuals[place] = residual_of(
                self.filter, lambda leaf: self._decide_by_partition(leaf, file)
            )
        return residual

    def _decide_by_partition(self, leaf: BooleanExpression, file: DataFile) -> bool | None:
        spec = self.spec(file.spec_id)
        if file.spec_id in self.whole:
            return None
        try:
            left = residual_evaluator_of(spec, leaf, self.case_sensitive, self.schema).residual_for(file.partition)
        except Exception:  # noqa: BLE001 - undecided if pyiceberg cannot evaluate it
            return None
        return True if isinstance(left, AlwaysTrue) else False if isinstance(left, AlwaysFalse) else None

    def _spelling(self, number: int) -> list[Callable[[object], object] | None]:
        """Return the JSON encoders of a spec's fields; None for a dropped column, whose values become null."""
        fields, types = self.spec(number).fields, self.partitions[number].fields
        _lazy_id_to_field = self.schema._lazy_id_to_field  # noqa: SLF001 - looking up ids would raise for dropped fields
        return [
            partition_encoder(kind.field_type) if field.source_id in _lazy_id_to_field else None
            for field, kind in zip(fields, types, strict=True)
        ]


def _true_on_error(evaluate: Callable[[], bool]) -> bool:
    """Return the result of an evaluation by pyiceberg.

    True if it raises an error other than InvalidTable, for example for bounds of a column's former type.
    """
    try:
        return evaluate()
    except InvalidTable:
        raise
    except Exception:  # noqa: BLE001 - extra files are harmless, missing ones are not
        return True


def _spec_of(spec: Json) -> PartitionSpec:
    return PartitionSpec.model_validate(spec)


def _schema_of(schema: Json) -> Schema:
    return Schema.model_validate(_readable(schema))


def _sources_of(schemas: list[Json]) -> Schema:
    """Return a schema with the top-level primitive fields of all schemas, each in its latest form, since partition
    fields may use dropped columns.
    """
    fields: dict[int, NestedField] = {}
    for each in schemas:
        for field_id, field in _schema_of(each)._lazy_id_to_field.items():  # noqa: SLF001
            fields[field_id] = NestedField(field_id, f"f{field_id}", field.field_type, required=False)
    flat = [field for field in fields.values() if field.field_type.is_primitive]
    return Schema(*flat)


def _readable(value: object) -> object:
    """Return a schema in which types unknown to pyiceberg are replaced by `unknown`."""
    if isinstance(value, dict):
        return {
            key: _known_type(each) if key in ("type", "element", "key", "value") else _readable(each)
            for key, each in value.items()
            if "default" not in key
        }
    if isinstance(value, list):
        return [_readable(each) for each in value]
    return value


def _known_type(kind: object) -> object:
    if isinstance(kind, str) and kind not in ("struct", "list", "map"):
        return kind if kind in _KNOWN or kind.startswith(_WITH_NUMBERS) else "unknown"
    return _readable(kind)
