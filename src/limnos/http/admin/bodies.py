# SPDX-License-Identifier: Apache-2.0
"""Parsing of requests of the admin API: names in paths, and bodies without unknown fields.

Must not know resources.
"""

from __future__ import annotations

import msgspec

from limnos.http.request import Request
from limnos.names.percent import unquote_form


class AdminRequestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base class of request bodies. Unknown fields are refused."""


def names_of(request: Request) -> tuple[str, ...]:
    """Form-decode the names in a request's path exactly once, with `+` as a space. Raises InvalidName for a malformed
    escape or invalid UTF-8.
    """
    return tuple([unquote_form(raw) for raw in request.params])
