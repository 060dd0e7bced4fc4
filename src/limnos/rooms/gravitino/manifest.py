# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `gravitino`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import Manifest, ProtocolEntry

MANIFEST: Final = Manifest(
    name="gravitino",
    about="Gravitino REST, by which the command line and the client also read the tree",
    protocols=(
        ProtocolEntry(
            name="gravitino",
            protocol="limnos.rooms.gravitino.server:protocol",
            paths=(
                "/api/metalakes",
                "/api/bulk",
                "/api/version",
                "/api/authn",
                "/api/health",
            ),
            error="limnos.rooms.gravitino.refusals:error_response",
        ),
    ),
    offers=(
        "limnos.rooms.gravitino.http.dto",
        "limnos.rooms.gravitino.http.handler_wrappers",
    ),
    docs=("reference/gravitino.md",),
)
