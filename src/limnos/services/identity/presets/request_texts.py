# SPDX-License-Identifier: Apache-2.0
"""Texts of users in requests for access: the reason of the one who asks, and the note of the one who declines.

Must not know requests. Another user reads such a text: it has no characters that control a terminal or reorder a line.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.model.errors import BadRequest

TEXT_MAX: Final = 500
"""The maximum number of characters of a reason or a note."""
_REFUSED: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters without the line feed, line separators, directional formatting, and lone surrogates."""


def check_text(text: str, *, what: str) -> str:
    r"""Return a text with line ends as `\n` and no white space around it.

    Raises BadRequest, which calls the text `what`, for one of more than `TEXT_MAX` characters, and for a control
    character.
    """
    plain_text = text.replace("\r\n", "\n")
    refused_match = _REFUSED.search(plain_text)
    if refused_match is not None:
        raise BadRequest(
            f"The {what} has the control character U+{ord(refused_match[0]):04X}: write it as plain text in one or more"
            " lines"
        )
    plain_text = plain_text.strip()
    if len(plain_text) > TEXT_MAX:
        raise BadRequest(f"The {what} has {len(plain_text)} characters, and may have {TEXT_MAX}: shorten it")
    return plain_text
