# SPDX-License-Identifier: Apache-2.0
"""Names and their encodings: `Path` is the name of an object of the tree, and each module converts names to and from
one encoding.

Must not know the store, a protocol's routes, or status codes. Every function is pure and every codec reversible. A name
that an encoding cannot express is refused with `InvalidName`, whose message gives advice. Use a codec by its module:
`iceberg.decode_path(raw)`, `canonical.encode(levels)`, `LogicalCodec(":").join(levels)`.
"""

from limnos.names import canonical, display, engine, fullname, iceberg, jsonform, lance, logical, percent
from limnos.names.dataverse import DataverseName, check_object_name
from limnos.names.errors import InvalidName, Reason
from limnos.names.fullname import FullName
from limnos.names.logical import LogicalCodec
from limnos.names.path import (
    PART_BYTES_MAX,
    PARTS_MAX,
    Levels,
    Path,
    check_catalog_name,
    check_gravitino_name,
    check_levels,
    check_metalake_name,
    check_part,
)
