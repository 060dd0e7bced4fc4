# SPDX-License-Identifier: Apache-2.0
"""Answers to pages of allowed origins: their headers, and the detection of preflight requests."""

from __future__ import annotations

import pytest

from limnos.http.cors import allow_origin, is_preflight, preflight_fields

CONSOLE = b"https://console.example.com"
ORIGINS = frozenset({CONSOLE})
ASKED = {b"origin": CONSOLE, b"access-control-request-method": b"PUT"}


def test_answer_names_the_requesting_origin() -> None:
    """An answer to a page of an allowed origin names that origin. Without an origin in the request, or in the settings,
    no header is added.
    """
    assert dict(allow_origin({b"origin": CONSOLE}, ORIGINS))[b"access-control-allow-origin"] == CONSOLE
    assert allow_origin({}, ORIGINS) == []
    assert allow_origin({b"origin": CONSOLE}, frozenset()) == []


def test_preflight_needs_options_origin_and_method() -> None:
    """A preflight is OPTIONS with an origin and a requested method, if the settings name an origin."""
    assert is_preflight("OPTIONS", ASKED, origins=ORIGINS)
    assert not is_preflight("GET", ASKED, origins=ORIGINS)
    assert not is_preflight("OPTIONS", {b"origin": CONSOLE}, origins=ORIGINS)
    assert not is_preflight("OPTIONS", {b"access-control-request-method": b"PUT"}, origins=ORIGINS)
    assert not is_preflight("OPTIONS", ASKED, origins=frozenset())


@pytest.mark.parametrize("requested_names", [b"", b"a\x0bb", b"x" * 3000, b"a;b"])
def test_invalid_header_names_are_not_allowed(requested_names: bytes) -> None:
    """Only valid header names of limited length are allowed."""
    fields = dict(preflight_fields({**ASKED, b"access-control-request-headers": requested_names}, ORIGINS))

    assert b"access-control-allow-headers" not in fields
    assert b"PUT" in fields[b"access-control-allow-methods"]


def test_headers_that_a_page_names_are_allowed() -> None:
    """The allowed headers are those that the page requests, in its spelling."""
    fields = dict(preflight_fields({**ASKED, b"access-control-request-headers": b"authorization, x-api-key"}, ORIGINS))

    assert fields[b"access-control-allow-headers"] == b"authorization, x-api-key"
