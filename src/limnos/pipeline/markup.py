# SPDX-License-Identifier: Apache-2.0
"""Parts of HTML pages and SVG drawings, in which the texts of users stay texts.

Must not know pipelines. Pages have no scripts and load nothing; their policy says so to the browser.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

_ILLEGAL = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069\u200e\u200f]"
)
"""Characters that XML does not allow, and those that reverse the direction of text."""
_PAGE_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:24px;color:#1d2733}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:4px 12px 4px 0;vertical-align:top;border-bottom:1px solid #dde2e8;"
    "overflow-wrap:anywhere}pre{white-space:pre-wrap;background:#f5f6f8;padding:12px}.picture{overflow:auto}"
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def escape(text: object) -> str:
    """Return a text for HTML and SVG, in elements and in quoted attributes."""
    return html.escape(_ILLEGAL.sub("\ufffd", str(text)), quote=True)


def shorten(text: str, most: int) -> str:
    """Return at most `most` characters of a text, of which the last one says that it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def page(title: str, body: Iterable[str], *, style: str = "") -> str:
    """Return an HTML page. `title` is text; `body` has parts of HTML whose texts are escaped. `style` is CSS."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title><style>{_PAGE_STYLE}{style}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *body,
            "</body></html>\n",
        ]
    )


def link(text: str, href: str) -> str:
    """Return a text as a link to a page of ours; as text if `href` is empty."""
    return f'<a href="{escape(href)}">{escape(text)}</a>' if href else escape(text)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table. `heads` are texts, the cells of `rows` are escaped already."""
    return [
        f"<table><thead><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr></thead><tbody>",
        *(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows),
        "</tbody></table>",
    ]
