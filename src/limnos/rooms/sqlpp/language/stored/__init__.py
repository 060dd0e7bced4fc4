# SPDX-License-Identifier: Apache-2.0
"""The storage of datasets: converts declared types to columns of an Iceberg table, and objects to its rows and back.

Must not know files, DataFrames or a catalog: it converts types and JSON.
"""

from limnos.rooms.sqlpp.language.stored.declared_types import is_built_in, storage_form_of_record
from limnos.rooms.sqlpp.language.stored.invariants import (
    broken_property,
    broken_schema,
    takes_outside_writers,
)
from limnos.rooms.sqlpp.language.stored.rows import Plain, object_shaper, read_open_part, reader_of, to_object, to_row
from limnos.rooms.sqlpp.language.stored.schema import (
    OPEN,
    columns,
    form_of,
    has_open,
    open_paths,
    properties_of,
    schema_of,
)
from limnos.rooms.sqlpp.language.stored.types import (
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
)
