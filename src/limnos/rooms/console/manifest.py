# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `console`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import Command, Manifest, ProtocolEntry, SectionEntry

MANIFEST: Final = Manifest(
    name="console",
    about="the console",
    switch="console.enabled",
    protocols=(
        ProtocolEntry(
            name="console",
            protocol="limnos.rooms.console.server:protocol",
            paths=("/console",),
            error="limnos.rooms.console.refusals:error_response",
        ),
    ),
    settings=(SectionEntry(name="console", section="limnos.config.server:ConsoleSection"),),
    commands=(
        Command(
            name="console",
            topic="Users and access",
            place=171,
            summary="Open the console in a browser, signed in.",
            code="limnos.cli.identity.console:console",
        ),
    ),
    docs=("guides/console.md",),
)
