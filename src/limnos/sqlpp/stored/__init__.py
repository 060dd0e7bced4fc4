"""The storage of datasets: declared types as columns of an Iceberg table, objects as its rows, and back.

May import the tree, `values`, `functions` and `errors`. Must not know files, data frames or a catalog: it converts
types and JSON.
"""

from limnos.sqlpp.stored.declared_types import is_built_in, storage_form_of_record
from limnos.sqlpp.stored.invariants import (
    ALLOWED,
    OUTSIDE_WRITERS,
    REFUSED,
    broken_property,
    broken_schema,
    takes_outside_writers,
)
from limnos.sqlpp.stored.rows import Plain, Row, object_shaper, open_read, reader_of, to_object, to_row
from limnos.sqlpp.stored.schema import OPEN, TYPE_PROPERTY, columns, form_of, has_open, properties_of, schema_of
from limnos.sqlpp.stored.types import (
    BUILT_IN,
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    at_path,
    check,
    decode_form,
    encode_form,
    type_at,
    type_label,
)

__all__ = [
    "ALLOWED",
    "BUILT_IN",
    "OPEN",
    "OUTSIDE_WRITERS",
    "REFUSED",
    "TYPE_PROPERTY",
    "AnyType",
    "ArrayType",
    "BagType",
    "DeclaredType",
    "FieldType",
    "Plain",
    "RecordType",
    "Row",
    "Scalar",
    "StorageForm",
    "at_path",
    "broken_property",
    "broken_schema",
    "check",
    "columns",
    "decode_form",
    "encode_form",
    "form_of",
    "has_open",
    "is_built_in",
    "object_shaper",
    "open_read",
    "properties_of",
    "reader_of",
    "schema_of",
    "storage_form_of_record",
    "takes_outside_writers",
    "to_object",
    "to_row",
    "type_at",
    "type_label",
]
