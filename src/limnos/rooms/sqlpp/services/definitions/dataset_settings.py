# SPDX-License-Identifier: Apache-2.0
"""The WITH clause of CREATE DATASET: its allowed fields and their types.

Must not know datasets. AsterixDB's storage settings are checked, but have no effect here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.errors import shorten, visible

UNKNOWN_FIELD, WRONG_TYPE, NEEDED, UNKNOWN_SCHEME, UNKNOWN_SUBFIELD = 1059, 1060, 1061, 1096, 1097
SCHEMES: Final = ("snappy", "none")
"""AsterixDB's schemes of compression. None has an effect: the engine compresses the files of all datasets."""
Fields = dict[str, "str | Fields"]
_WHOLE: Final = "bigint"
KNOWN: Final[Fields] = {
    "merge-policy": {
        "name": "string",
        "parameters": {
            "max-mergable-component-size": _WHOLE,
            "max-tolerance-component-count": _WHOLE,
            "num-components": _WHOLE,
            "size-ratio": "double",
            "max-component-count": _WHOLE,
            "min-merge-component-count": _WHOLE,
            "max-merge-component-count": _WHOLE,
        },
    },
    "storage-block-compression": {"scheme": "string"},
    "node-group": {"name": "string"},
    "storage-format": {
        "format": "string",
        "max-tuple-count": _WHOLE,
        "free-space-tolerance": "double",
        "max-leaf-node-size": "string",
    },
    "open-part": "string",
    "outside-writers": "string",
}
_NEEDED: Final = {
    "merge-policy": "name",
    "storage-block-compression": "scheme",
    "node-group": "name",
    "storage-format": "format",
}


def check_settings(settings: tree.Object | None) -> None:
    """Check the fields of a WITH clause. Raises SqlppError for an unknown or missing field, a value of the wrong type,
    or an unknown compression scheme.
    """
    if settings is None:
        return
    pairs = _pairs(settings)
    unknown = [name for name in pairs if name not in KNOWN]
    if unknown:
        raise SqlppError(UNKNOWN_FIELD, f"Field(s) [{', '.join(unknown)}] unsupported in the with clause", settings.at)
    for name, value in pairs.items():
        _check(value, KNOWN[name], path=name)
        needed_setting = _NEEDED.get(name)
        if needed_setting is not None and isinstance(value, tree.Object) and needed_setting not in _pairs(value):
            text = f"Field '{name}.{needed_setting}' in the with clause cannot be null or missing"
            raise SqlppError(NEEDED, text, value.at)
    _check_scheme(pairs.get("storage-block-compression"))


def _check_scheme(value: tree.Expression | None) -> None:
    """Check the name of the compression scheme. Raises SqlppError for an unknown scheme."""
    scheme = _pairs(value).get("scheme") if isinstance(value, tree.Object) else None
    if isinstance(scheme, tree.String) and scheme.value.lower() not in SCHEMES:
        text = (
            f"Unknown compression scheme {visible(shorten(scheme.value))}. Supported schemes are [{','.join(SCHEMES)}]"
        )
        raise SqlppError(UNKNOWN_SCHEME, text, scheme.at)


def _check(value: tree.Expression, known: str | Fields, *, path: str) -> None:
    word = _type_of(value)
    if isinstance(known, str):
        if word not in (known, "null") and (known, word) != ("double", "bigint"):
            raise _wrong_type(value, path=path, needed=known)
        return
    if not isinstance(value, tree.Object):
        raise _wrong_type(value, path=path, needed="object")
    pairs = _pairs(value)
    unknown = [name for name in pairs if name not in known]
    if unknown:
        text = f"Subfield(s) [{', '.join(unknown)}] in '{path}' unsupported in the with clause"
        raise SqlppError(UNKNOWN_SUBFIELD, text, value.at)
    for name, inner in pairs.items():
        _check(inner, known[name], path=f"{path}.{name}")


def _pairs(value: tree.Object) -> Mapping[str, tree.Expression]:
    return {pair.name.value: pair.value for pair in value.pairs if isinstance(pair.name, tree.String)}


def _wrong_type(value: tree.Expression, *, path: str, needed: str) -> SqlppError:
    text = f"Field '{path}' in the with clause must be of type {needed}, but found {_type_of(value)}"
    return SqlppError(WRONG_TYPE, text, value.at)


def _type_of(value: tree.Expression) -> str:
    words: dict[type[tree.Expression], str] = {
        tree.String: "string",
        tree.Integer: "bigint",
        tree.Decimal: "double",
        tree.Boolean: "boolean",
        tree.Object: "object",
        tree.Array: "array",
        tree.Null: "null",
    }
    return words.get(type(value), "expression")
