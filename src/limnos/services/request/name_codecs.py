# SPDX-License-Identifier: Apache-2.0
"""Name codecs: the codec that joins the levels of a catalog's namespaces to one name, as in Gravitino's schema names.

The encoding depends on the server's separator and on whether namespaces nest.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from limnos.names.logical import LogicalCodec, Policy
from limnos.services.request.catalog_traits import is_nested
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.request_view import RequestView


def codec_of(request_view: RequestView) -> LogicalCodec:
    """Return the codec for names of namespaces in the request's catalog."""
    nested = request_view.settled.catalog is None or is_nested(request_view.catalog_record)
    return codec_for(request_view.defaults, nested=nested)


def codec_for(defaults: RequestDefaults, *, nested: bool = True) -> LogicalCodec:
    """Return the codec for names of namespaces, for callers without a request view of the catalog."""
    return _codec(defaults.separator, policy=defaults.separator_policy, nested=nested)


@cache
def _codec(separator: str, *, policy: str, nested: bool) -> LogicalCodec:
    """Return the codec for a separator, a policy, and catalogs with or without nested namespaces. Cached."""
    return LogicalCodec(separator, cast("Policy", policy), nested)
