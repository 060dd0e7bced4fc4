# SPDX-License-Identifier: Apache-2.0
"""The public URL of the server's pages, and what they show, from the settings."""

from __future__ import annotations

from typing import Final

from limnos.config.settings import Settings
from limnos.config.values import is_loopback, split_listen
from limnos.http.console.site import ConsoleSite
from limnos.manifests.switches import RoomSet

_WITH_LINKS: Final = frozenset({"sqlpp"})
"""Rooms to which pages of the kernel link. They count as off where they are not installed."""


def console_site_of(settings: Settings, rooms: RoomSet) -> ConsoleSite:
    """Return the console's path, origin, TLS, sign-in by name and rooms that are off, as its routes use them."""
    scheme, _, rest = (settings.server.public_url or "").partition("://")
    authority, _, path = rest.partition("/")
    return ConsoleSite(
        prefix=f"/{path}" if path else "",
        origin=f"{scheme}://{authority}" if authority else None,
        is_tls=scheme == "https" or settings.tls.certificate is not None,
        allows_name_only=settings.access.authentication == "simple" and _is_on_loopback(settings),
        rooms_off=_WITH_LINKS - {each.name for each in rooms.on} | {each.manifest.name for each in rooms.off},
    )


def _is_on_loopback(settings: Settings) -> bool:
    listen = settings.server.listen
    return listen is None or is_loopback(split_listen(listen)[0])
