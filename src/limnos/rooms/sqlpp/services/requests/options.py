# SPDX-License-Identifier: Apache-2.0
"""Options of SET: those that are applied, accepted without effect, or refused.

Must not know statements other than SET. A hint to AsterixDB's compiler changes no result, so it is accepted and
ignored. An option that would change results, and an unknown one, is refused with its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.binder.similarity import SIMILAR, Similarity
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, compilation

HINTS: Final = frozenset(
    {
        "compiler.aggregate.distinct.hash",
        "compiler.aggregate.distinct.hash.memory",
        "compiler.arrayindex",
        "compiler.batch.lookup",
        "compiler.cbo",
        "compiler.cbotest",
        "compiler.column.filter",
        "compiler.copy.to.write.buffer.size",
        "compiler.deltalake.filesplits",
        "compiler.disjunction.as.join",
        "compiler.disjunction.hash.threshold",
        "compiler.external.field.pushdown",
        "compiler.externalscanmemory",
        "compiler.extract.common.expression.limit",
        "compiler.forcejoinorder",
        "compiler.framesize",
        "compiler.groupmemory",
        "compiler.index.covering",
        "compiler.indexonly",
        "compiler.internal.sanitycheck",
        "compiler.joinmemory",
        "compiler.min.memory.allocation",
        "compiler.parallelism",
        "compiler.queryplanshape",
        "compiler.sort.parallel",
        "compiler.sort.samples",
        "compiler.sortmemory",
        "compiler.subplan.merge",
        "compiler.subplan.nestedpushdown",
        "compiler.textsearchmemory",
        "compiler.vector.kmultiplier",
        "compiler.vector.trainseed",
        "compiler.windowmemory",
        "hash_merge",
        "import-private-functions",
        "inline_with",
        "rewrite_attempt_batch_assign",
        "rewrite_in_as_or",
        "rewrite_internal_queryuid_pk",
        "rewrite_or_as_join",
        "simfunction",
        "simthreshold",
    }
)
"""Names of AsterixDB's options that only affect its query plans, or operators that do not exist here."""
_SIZE: Final = re.compile(r"(-?\d{1,15}(?:\.\d{1,9})?)\s*(?:(K|M|G|T|P)?i?B?)", re.ASCII | re.IGNORECASE)
_FRAMES_MIN: Final = {
    "compiler.sortmemory": 3,
    "compiler.groupmemory": 4,
    "compiler.joinmemory": 5,
    "compiler.windowmemory": 5,
}
"""The minimum number of frames of each of AsterixDB's operators, in the order in which AsterixDB checks them."""
_FRAME_BYTES: Final = 32768
_SIMILARITIES: Final = {"jaccard": ("similarity_jaccard", ">="), "edit-distance": ("edit_distance", "<=")}
ORDERED_FIELDS: Final = "compiler.ordered.fields"
"""The option that decides the order of fields in objects (`sqlpp.inference.field_order`)."""
BAD_VALUE: Final = 1051
FEEDS: Final = "wait-for-completion-feed"


def check_option(statement: tree.SetOption) -> None:
    """Check an option of SET. Raises SqlppError for an unsupported name (ASX1079) or an invalid value (ASX1051,
    ASX1079).
    """
    name = statement.name.lower()
    if name in _FRAMES_MIN:
        _memory_bytes(statement.value, at=statement.at)
    if name == "simfunction" and statement.value.lower() not in _SIMILARITIES:
        raise compilation(
            f"Unknown similarity function {statement.value}: there are jaccard, edit-distance", statement.at
        )
    if name == ORDERED_FIELDS and statement.value.lower() not in ("true", "false"):
        raise compilation(f"The option {ORDERED_FIELDS} takes true or false, and has {statement.value}", statement.at)
    if name in HINTS or name == ORDERED_FIELDS:
        return
    reason = ": feeds are not supported" if name == FEEDS else ""
    raise compilation(f"Query parameter {statement.name} is not supported{reason}", statement.at)


def check_memory(options: Mapping[str, str], *, at: TextPosition) -> None:
    """Check memory sizes in options before a query, as AsterixDB does; they have no effect here. Raises SqlppError."""
    for name in [each for each in _FRAMES_MIN if each in options]:
        frames = _FRAMES_MIN[name]
        least = frames * _FRAME_BYTES
        count = _memory_bytes(options[name], at=at)
        if count < least:
            text = f'Invalid `{name}` "{count}" for frame size={_FRAME_BYTES}. value should be >= {frames} * frame size'
            raise SqlppError(BAD_VALUE, f'{text}: `{name}` "{least}" in bytes', at)


def _memory_bytes(text: str, *, at: TextPosition) -> int:
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise SqlppError(BAD_VALUE, f"The given string: {text} is not a byte unit string (e.g., 320KiB or 1024).", at)
    return int(float(size[1]) * 1024 ** " KMGTP".index((size[2] or " ").upper()))


def has_ordered_fields(options: Mapping[str, str]) -> bool:
    """Return whether objects keep the order of SELECT, by the option `compiler.ordered.fields`."""
    return options.get(ORDERED_FIELDS, "true").lower() == "true"


def similarity_of(options: Mapping[str, str]) -> Similarity:
    """Return the similarity function and threshold of `~=`, from the options `simfunction` and `simthreshold`.

    Raises SqlppError for an invalid threshold.
    """
    chosen, threshold = options.get("simfunction"), options.get("simthreshold")
    function, operator = SIMILAR[:2] if chosen is None else _SIMILARITIES[chosen.lower()]
    try:
        return function, operator, SIMILAR[2] if threshold is None else float(threshold.rstrip("fF"))
    except ValueError:
        raise compilation(f"The option simthreshold takes a number, and has {threshold}") from None
