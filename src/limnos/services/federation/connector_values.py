# SPDX-License-Identifier: Apache-2.0
"""Values that connectors return: checks their shapes, because connectors are the code of other packages.

Must not know callers or their rights. A value of another shape is an error of the source, which the call names.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from limnos.model.errors import SourceFailed
from limnos.names.errors import InvalidName
from limnos.names.parts import check_part, quote_for_message
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo, SourceTopicInfo
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.connectors")


def listable_names(names: object, *, catalog: str) -> list[str]:
    """Return the names that a connector lists, each once, without those that no name of the server may be: one odd
    entry of a source does not hide the others. Raises SourceFailed for a value that is no list of texts.
    """
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SourceFailed(
            f"Catalog {catalog}: its connector returns {_words(names)} where a list of texts is due: its makers must"
            " mend it"
        )
    left_out = [name for name in dict.fromkeys(names) if not _is_name(name)]
    if not left_out:
        return list(dict.fromkeys(names))
    log.warning(
        "names of a source are left out of a list",
        catalog=catalog,
        count=len(left_out),
        first=quote_for_message(left_out[0]),
    )
    hidden = frozenset(left_out)
    return [name for name in dict.fromkeys(names) if name not in hidden]


def _is_name(name: str) -> bool:
    try:
        check_part(name)
    except InvalidName:
        return False
    return True


def _words(value: object) -> str:
    """Return the words for a value that is no list of texts."""
    if not isinstance(value, list):
        return f"a value of type {type(value).__name__}"
    other = next(each for each in value if not isinstance(each, str))
    return f"a list with a value of type {type(other).__name__}"


def table_of(value: object) -> SourceTableInfo:
    """Return the table that a connector has loaded. Raises SourceFailed for a value of another shape."""
    if not isinstance(value, SourceTableInfo):
        raise _wrong(value, SourceTableInfo)
    if not (_has_texts(value.properties) and isinstance(value.comment, str | None)):
        raise _wrong_part("the comment or the properties of a table", "texts")
    if not (_are_objects(value.columns) and _are_objects(value.indexes) and isinstance(value.layout, dict | None)):
        raise _wrong_part("columns, indexes or the layout of a table", "JSON objects")
    return value


def schema_of(value: object) -> SourceSchemaInfo:
    """Return the schema that a connector has loaded. Raises SourceFailed for a value of another shape."""
    if not isinstance(value, SourceSchemaInfo):
        raise _wrong(value, SourceSchemaInfo)
    if not (_has_texts(value.properties) and isinstance(value.comment, str | None)):
        raise _wrong_part("the comment or the properties of a schema", "texts")
    return value


def topic_of(value: object) -> SourceTopicInfo:
    """Return the topic that a connector has loaded. Raises SourceFailed for a value of another shape."""
    if not isinstance(value, SourceTopicInfo):
        raise _wrong(value, SourceTopicInfo)
    if not _has_texts(value.properties):
        raise _wrong_part("the properties of a topic", "texts")
    return value


def _has_texts(properties: object) -> bool:
    return isinstance(properties, dict) and all(isinstance(text, str) for pair in properties.items() for text in pair)


def _are_objects(rows: object) -> bool:
    """Return whether a value is a list of JSON objects."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return _is_json(rows)


def _is_json(rows: Iterable[object]) -> bool:
    try:
        msgspec.json.encode(rows)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return False
    return True


def _wrong(value: object, kind: type) -> SourceFailed:
    return SourceFailed(
        f"its connector returns a value of type {type(value).__name__} where a {kind.__name__} is due: its makers must"
        " mend it"
    )


def _wrong_part(part: str, due: str) -> SourceFailed:
    return SourceFailed(f"its connector returns {part} that are no {due}: its makers must mend it")
