# SPDX-License-Identifier: Apache-2.0
"""Generated names: every kind of part that is allowed, with many of the characters that need escapes in some
spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import strategies as st

from limnos.names import InvalidName

T = TypeVar("T")

_TRICKY = ".@%$:;/\\`\"'+#?&!^{}= \t\n\r-_~aAzZ019é日😀\u00a0\u2028\ufeff"
_ANY = st.characters(codec="utf-8", exclude_characters="\x00\x01\x1f")


def _legal(part: str) -> bool:
    return part not in (".", "..") and len(part.encode()) <= 255


def parts(*, without: str = "") -> st.SearchStrategy[str]:
    """Return a strategy of valid parts without the characters in `without`."""
    characters = st.sampled_from(_TRICKY) | _ANY
    allowed = characters.filter(lambda character: character not in without)
    return st.text(allowed, min_size=1, max_size=12).filter(_legal)


def levels(*, without: str = "", size_max: int = 5) -> st.SearchStrategy[tuple[str, ...]]:
    """Return a strategy of one to `size_max` valid parts."""
    return st.lists(parts(without=without), min_size=1, max_size=size_max).map(tuple)


def refusal(call: Callable[..., object], *args: object, **keywords: object) -> InvalidName:
    """Return the InvalidName that the call raises. The test fails if it raises none."""
    with pytest.raises(InvalidName) as caught:
        call(*args, **keywords)
    return caught.value


def attempt(call: Callable[..., T], *args: object, **keywords: object) -> T | InvalidName:
    """Return the result of the call, or the InvalidName that it raises."""
    try:
        return call(*args, **keywords)
    except InvalidName as error:
        return error
