# SPDX-License-Identifier: Apache-2.0
"""The public URL of the server as browsers see it, from the settings."""

from __future__ import annotations

from typing import NamedTuple

from limnos.config.settings import Settings


class PublicUrl(NamedTuple):
    """The public URL of the server.

    - `prefix`: the path under which a proxy serves the server, without a slash at its end.
    - `origin`: scheme, host and port; None if the request's Host header gives them.
    - `is_tls`: whether browsers access it over https.
    """

    prefix: str
    origin: str | None
    is_tls: bool


def public_url_of(settings: Settings) -> PublicUrl:
    """Return the URL of the setting `server.public_url`, or that of the server itself."""
    scheme, _, rest = (settings.server.public_url or "").partition("://")
    authority, _, path = rest.partition("/")
    return PublicUrl(
        prefix=f"/{path}" if path else "",
        origin=f"{scheme}://{authority}" if authority else None,
        is_tls=scheme == "https" or settings.tls.certificate is not None,
    )
