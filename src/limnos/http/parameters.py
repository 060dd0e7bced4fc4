"""Query parameters: which a route knows, and what is refused of those that a request sends.

May import `model`, `names` and `http.routing`. A route declares what it reads (`Route.query`), what clients send to it that changes nothing
here (`Route.query_ignored`), and which may be repeated. The OpenAPI documents are written from the same declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.errors import BadRequest
from limnos.names.parts import quote_for_message
from limnos.names.percent import unquote_form

if TYPE_CHECKING:
    from collections.abc import Collection

PAGING = ("limit", "offset", "page", "pageSize", "pageToken", "page_size", "page_token")
"""Names by which clients ask for a page: for lists that always come whole."""
SHOWN_MAX = 100
"""How many characters of an unknown name a refusal shows."""


def check_parameters(
    query_string: bytes,
    known: Collection[str],
    *,
    ignored: Collection[str] = (),
    repeatable: Collection[str] = (),
    refused: Collection[str] = (),
    changes: bool,
) -> None:
    """Refuse parameters that could make a request mean something else than its sender thinks.

    Args:
        query_string: what stands behind the `?`, as it was sent.
        known: names that the route reads.
        ignored: names that clients send to it and that change nothing.
        repeatable: those of `known` that may come several times.
        refused: names that ask for something that a read does not do.
        changes: the request may change something, so an unknown name is refused; a read passes it over.

    Raises:
        BadRequest: a known name comes twice, a change has an unknown one, or a read one that is refused.
        InvalidName: a name is not percent-encoded UTF-8.
    """
    seen: set[str] = set()
    for pair in query_string.split(b"&"):
        if not pair:
            continue
        name = unquote_form(pair.partition(b"=")[0])
        if name in known or name in ignored:
            if name in seen and name not in repeatable:
                raise BadRequest(f"Query parameter {name} is there twice: send it once")
            seen.add(name)
        elif name in refused:
            raise BadRequest(f"Query parameter {name} is not served here: the list comes whole. Leave it out")
        elif changes:
            raise BadRequest(
                f"Unknown query parameter {quote_for_message(name[:SHOWN_MAX])}, so nothing was done: {_known_words(known)}"
            )


def _known_words(known: Collection[str]) -> str:
    return f"this operation knows {', '.join(known)}" if known else "this operation takes none"
