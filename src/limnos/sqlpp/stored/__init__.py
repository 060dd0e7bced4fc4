"""How a dataset is stored: declared types as columns of an Iceberg table, objects as its rows, and back.

May import the tree, `values`, `functions` and `errors`. Must not know files, frames or a catalog: types and JSON in, types and JSON out.
"""

from limnos.sqlpp.stored.declared import declared, is_built_in
from limnos.sqlpp.stored.kept import (
    ALLOWED,
    OUTSIDE_WRITERS,
    REFUSED,
    broken_property,
    broken_schema,
    takes_outside_writers,
)
from limnos.sqlpp.stored.rows import Plain, Row, open_read, reader_of, shaped, to_object, to_row
from limnos.sqlpp.stored.schema import OPEN, TYPE_PROPERTY, columns, form_of, has_open, properties_of, schema_of
from limnos.sqlpp.stored.types import (
    BUILT_IN,
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    FieldType,
    Form,
    RecordType,
    Scalar,
    at_path,
    check,
    decoded,
    encoded,
    named,
    type_at,
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
    "Form",
    "Plain",
    "RecordType",
    "Row",
    "Scalar",
    "at_path",
    "broken_property",
    "broken_schema",
    "check",
    "columns",
    "declared",
    "decoded",
    "encoded",
    "form_of",
    "has_open",
    "is_built_in",
    "named",
    "open_read",
    "properties_of",
    "reader_of",
    "schema_of",
    "shaped",
    "takes_outside_writers",
    "to_object",
    "to_row",
    "type_at",
]
