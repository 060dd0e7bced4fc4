# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `connectors`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import Manifest, SectionEntry

MANIFEST: Final = Manifest(
    name="connectors",
    about="catalogs of external systems",
    notes="limnos.rooms.connectors.server:notes",
    parts="limnos.rooms.connectors.server:register_sources",
    close="limnos.rooms.connectors.server:close",
    settings=(SectionEntry(name="sources", section="limnos.config.storage:SourcesSection"),),
    docs=("guides/connectors.md",),
)
