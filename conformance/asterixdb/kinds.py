"""Why cases do not pass, by kind: what an outcome's reason says, and whether it is meant to stay so.

May import the standard library. It must not know cases. A kind with a decision is not to pass; the others are open.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of reason: its name, the pattern of reasons, and the decision if it is not to pass."""

    name: str
    pattern: re.Pattern[str]
    decision: str = ""


def _kind(name: str, pattern: str, decision: str = "") -> Kind:
    return Kind(name, re.compile(pattern, re.IGNORECASE | re.DOTALL), decision)


KINDS: Final = (
    _kind("the time limit was reached", r"^time limit|^connection:"),
    _kind("the engine or the server failed", r"ASX3102|ASX0001|\bInternal|could not carry"),
    _kind("no error where one is expected", r"^no error"),
    _kind("another error than the expected one", r"^another error"),
    _kind("another status than the expected one", r"^status \d+"),
    _kind("results in another order", r"^order of results$"),
    _kind("an array's items in another order", r"^order of an array's items$"),
    _kind("another number of results", r"^\d+ results for \d+"),
    _kind("other fields in a whole response", r"^\."),
    _kind("other values", r"^expected "),
    _kind(
        "shapes and spatial functions",
        r"functions about shapes|signature (\S+\.)?`?(st_|spatial|point|line|circle|polygon|rectangle|get_(x|y|center|radius|points)\b|create_(point|line|circle|rect|poly))|datatype with name (point|line|circle|polygon|rectangle|geometry|point3d)\b",
    ),
    _kind("intervals", r"interval|overlap_bins"),
    _kind("full text and words", r"ftcontains|word_tokens|edit_distance_contains|full[- ]?text|gram_tokens|hashed_"),
    _kind("vectors and their indexes", r"vector|ann_distance"),
    _kind("a function that is not built in", r"ASX1081|Cannot find function"),
    _kind("private functions of AsterixDB", r"import-private"),
    _kind("a syntax that is not read", r"ASX1001"),
    _kind("a file's format", r"ASX30\d\d|Unknown format"),
    _kind("a type or field that is not taken", r"ASX1082|ASX0006|ASX1051|ASX1092|datatype"),
    _kind("statements or options that are refused", r"not supported|Unknown|ASX1079|ASX1080|ASX1082|ASX1093"),
    _kind("other refusals", r""),
)  # fmt: skip


def kind_of(reason: str) -> Kind:
    """Return the kind of a reason."""
    return next(kind for kind in KINDS if kind.pattern.search(reason))
