# SPDX-License-Identifier: Apache-2.0
r"""Hidden dot segments of paths: `%2e%2e`, `..%2f`, `.\t.` and the like, which some readers of a path follow.

Must not access a file system. A path whose characters begin with a location can still lead out of it, because libraries
interpret paths as URLs: they decode percent signs, remove tabs and line feeds, and take a backslash for a slash.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Final

_DECODINGS_MAX: Final = 8
"""The number of times that a path's percent signs are decoded in the search for dot segments."""
_REMOVED: Final = re.compile(r"[\t\n\r]|^[\x00-\x20]+|[\x00-\x20]+$")
"""Characters that parsers of URLs remove: tabs and line ends everywhere, other control characters at the ends."""
_ESCAPE: Final = re.compile("%([0-7][0-9A-Fa-f])")
"""The escape of an ASCII character. Others hide no dot."""
_LOCAL: Final = re.compile(r"file:(?=/(?!/))|file://(?=/)")


def has_dot_segments(path: str) -> bool:
    """Return whether a path has a dot segment, plain or hidden, after any number of decodings up to a limit."""
    text = path
    for _ in range(_DECODINGS_MAX):
        if any(part in (".", "..") for part in _REMOVED.sub("", text).replace("\\", "/").split("/")):
            return True
        decoded = _ESCAPE.sub(_unescape, text)
        if decoded == text:
            return False
        text = decoded
    return True


def _unescape(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def has_foreign_path(location: str, paths: Iterable[str]) -> bool:
    """Return whether one of the paths is not, by its characters, a directory's location or a location below it."""
    own_path = _without_scheme(location)
    return any(has_dot_segments(each) or not f"{_without_scheme(each)}/".startswith(f"{own_path}/") for each in paths)


def _without_scheme(location: str) -> str:
    """Return a local location as a path, and another location unchanged, without a slash at the end."""
    path = _LOCAL.sub("", location, count=1) if location.startswith("file:") else location
    return posixpath.normpath(path) if path.startswith("/") else path.rstrip("/")
