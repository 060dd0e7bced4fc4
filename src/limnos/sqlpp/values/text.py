r"""String operators: `||` and LIKE.

May import `model` and `errors`. Must not use regular expressions for users' patterns: matching takes time proportional
to the lengths of text and pattern, whatever the pattern.
"""

from __future__ import annotations

from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.values.model import MISSING, MissingType, Value, is_unknown

INVALID_PATTERN = 46

_ANY, _ONE = object(), object()


def concatenate(left: Value, right: Value) -> Value:
    """`left || right`; NULL if one is no string."""
    if is_unknown(left) or is_unknown(right):
        return MISSING if left is MISSING or right is MISSING else None
    return left + right if isinstance(left, str) and isinstance(right, str) else None


def like(text: Value, pattern: Value) -> bool | MissingType | None:
    r"""`text LIKE pattern`: `%` matches any text, `_` any character; `\` escapes them and itself.

    Raises SqlppError (ASX0046) for `\` before another character or at the end.
    """
    if is_unknown(text) or is_unknown(pattern):
        return MISSING if text is MISSING or pattern is MISSING else None
    if not isinstance(text, str) or not isinstance(pattern, str):
        return None
    return _matches(text, _read(pattern))


def _read(pattern: str) -> list[object]:
    """The pattern's parts: characters and wildcards."""
    parts: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("%", "_", "\\"):
                raise SqlppError(INVALID_PATTERN, f"Invalid pattern '{pattern}' for LIKE")
            parts.append(escaped)
        else:
            parts.append({"%": _ANY, "_": _ONE}.get(character, character))
    return parts


def _matches(text: str, parts: list[object]) -> bool:
    """Greedy matching: only the last `%` is retried, because retrying an earlier one cannot help."""
    at, part, retry, tried = 0, 0, -1, 0
    while at < len(text):
        if part < len(parts) and parts[part] is _ANY:
            retry, tried = part, at
            part += 1
        elif part < len(parts) and (parts[part] is _ONE or parts[part] == text[at]):
            at, part = at + 1, part + 1
        elif retry >= 0:
            tried += 1
            at, part = tried, retry + 1
        else:
            return False
    return all(rest is _ANY for rest in parts[part:])
