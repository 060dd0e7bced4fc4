# SPDX-License-Identifier: Apache-2.0
"""The scope of a path whose parameters for metalake and catalog are `{m}` and `{c}`.

Must not know protocols.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.names.percent import unquote_form
from limnos.services.request.request_scope import RequestScope


def scope_of_path(path: str, request: Request) -> RequestScope:
    """Return the metalake and catalog that a request's path names.

    `path` is the route's path, whose parameters `{m}` and `{c}` are those names. Raises InvalidName for an invalid
    name.
    """
    names = [segment.strip("{}") for segment in path.split("/") if segment.startswith("{")]
    fields = dict(zip(names, request.params, strict=True))
    return RequestScope(*[unquote_form(fields[name]) for name in ("m", "c") if name in fields])
