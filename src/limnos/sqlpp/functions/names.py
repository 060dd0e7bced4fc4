"""Functions of dataverse names (seed 4): canonical form to parts and back.

May import the table and `limnos.names`. A string is a name of one part, an array is its parts, and so it is given back: a string for one
part, an array for more.
"""

from __future__ import annotations

from limnos.names.dataverse import DataverseName
from limnos.names.errors import InvalidName
from limnos.sqlpp.functions.collections import items
from limnos.sqlpp.functions.costs import character_cost
from limnos.sqlpp.functions.table import scalar
from limnos.sqlpp.values.model import Value


@scalar("decode_dataverse_name", least=1, cost=character_cost)
def decode(value: Value) -> Value:
    """The parts of a canonical form, always an array; NULL for what is none."""
    if not isinstance(value, str):
        return None
    try:
        return tuple(DataverseName.from_canonical_form(value).parts)
    except InvalidName:
        return None


@scalar("encode_dataverse_name", least=1, cost=character_cost)
def encode(value: Value) -> Value:
    """The canonical form of a name; NULL for what is none."""
    parts = (value,) if isinstance(value, str) else items(value)
    if parts is None or not parts or not all(isinstance(part, str) for part in parts):
        return None
    try:
        return DataverseName.create(str(part) for part in parts).canonical_form
    except InvalidName:
        return None
