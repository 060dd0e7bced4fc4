# SPDX-License-Identifier: Apache-2.0
"""The public URL of the console, and what its pages show, from the settings."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from limnos.app.public_url import public_url_of
from limnos.config.settings import Settings
from limnos.config.values import is_loopback, split_listen
from limnos.manifests.switches import RoomSet
from limnos.rooms.console.http.site import ConsoleSite

_WITH_LINKS: Final = frozenset({"sqlpp"})
"""Rooms to which pages of the console link. They count as off where they are not installed."""


def console_site_of(settings: Settings, rooms: RoomSet) -> ConsoleSite:
    """Return the console's path, origin, TLS, sign-in by name and rooms that are off, as its routes use them."""
    url = public_url_of(settings)
    return ConsoleSite(
        prefix=url.prefix,
        origin=url.origin,
        is_tls=url.is_tls,
        allows_name_only=settings.access.authentication == "simple" and _is_on_loopback(settings),
        has_engine=find_spec("pyspark") is not None,
        rooms_off=_WITH_LINKS - {each.name for each in rooms.on} | {each.manifest.name for each in rooms.off},
    )


def _is_on_loopback(settings: Settings) -> bool:
    listen = settings.server.listen
    return listen is None or is_loopback(split_listen(listen)[0])
