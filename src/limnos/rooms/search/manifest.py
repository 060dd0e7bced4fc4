# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `search`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import ClientEntry, Command, Manifest, PagesEntry, RoutesEntry, SectionEntry

MANIFEST: Final = Manifest(
    name="search",
    about="searches",
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.search.http.searches:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/search",),
        ),
    ),
    tables=(
        "search_text",
        "search_words",
        "search_word",
        "search_position",
    ),
    loops=("limnos.rooms.search.server:indexing_loop",),
    settings=(SectionEntry(name="search", section="limnos.config.settings:SearchSection"),),
    client=(ClientEntry(attribute="searches", resource="limnos.client.catalog.searches:Searches"),),
    commands=(
        Command(
            name="find",
            topic="Objects",
            place=31,
            summary="Search objects by name, words, tag or owner.",
            code="limnos.rooms.search.cli.find:find",
        ),
    ),
    pages=(PagesEntry(routes="limnos.rooms.search.console.searches:ROUTES", paths=("/search",)),),
    docs=("guides/search.md",),
)
