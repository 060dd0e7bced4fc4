# SPDX-License-Identifier: Apache-2.0
"""Parameters of a request: the scope that its path names, and the check of its query against what its route reads.

Must not know protocols. A route declares the parameters it reads (`Route.query`), those that clients send without
effect here (`Route.query_ignored`), and those that may be repeated. The OpenAPI documents are generated from the same
declarations.
"""

from __future__ import annotations

from collections.abc import Collection

from limnos.http.request import Request
from limnos.model.errors import BadRequest
from limnos.names.parts import quote_for_message
from limnos.names.percent import unquote_form
from limnos.services.request.request_scope import RequestScope

PAGING = ("limit", "offset", "page", "pageSize", "pageToken", "page_size", "page_token")
"""Paging parameters; lists that are always complete refuse them."""
SHOWN_MAX = 100
"""The maximum number of characters of an unknown name in an error message."""


def check_parameters(
    query_string: bytes,
    known: Collection[str],
    *,
    ignored: Collection[str] = (),
    repeatable: Collection[str] = (),
    refused: Collection[str] = (),
    changes: bool,
) -> None:
    """Refuse parameters that could give a request another meaning than its sender expects.

    Args:
        query_string: The query string as it was sent.
        known: Names that the route reads.
        ignored: Names that clients send to it without effect.
        repeatable: Those of `known` that may be sent several times.
        refused: Names of features that a read does not support.
        changes: Whether the request may make changes, so that an unknown name is refused; a read ignores it.

    Raises:
        BadRequest: A known name is repeated, a change has an unknown name, or a read has a refused name.
        InvalidName: A name is not percent-encoded UTF-8.
    """
    seen_names: set[str] = set()
    for pair in query_string.split(b"&"):
        if not pair:
            continue
        name = unquote_form(pair.partition(b"=")[0])
        if name in known or name in ignored:
            if name in seen_names and name not in repeatable:
                raise BadRequest(f"Query parameter {name} is repeated: send it once")
            seen_names.add(name)
        elif name in refused:
            raise BadRequest(
                f"Query parameter {name} is not supported by this operation, which returns the whole list. Leave it out"
            )
        elif changes:
            raise BadRequest(
                f"Unknown query parameter {quote_for_message(name[:SHOWN_MAX])}, so nothing was done:"
                f" {_known_words(known)}"
            )


def _known_words(known: Collection[str]) -> str:
    return f"this operation has {', '.join(known)}" if known else "this operation has none"


def scope_of_path(path: str, request: Request) -> RequestScope:
    """Return the metalake and catalog that a request's path names.

    `path` is the route's path, whose parameters `{m}` and `{c}` are those names. Raises InvalidName for an invalid
    name.
    """
    names = [segment.strip("{}") for segment in path.split("/") if segment.startswith("{")]
    fields = dict(zip(names, request.params, strict=True))
    return RequestScope(*[unquote_form(fields[name]) for name in ("m", "c") if name in fields])
