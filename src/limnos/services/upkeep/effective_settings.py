# SPDX-License-Identifier: Apache-2.0
"""Effective settings of the node that handles the request, for service admins, with secrets masked.

Must not know any wire format, nor the loading of settings: `app` provides them as strings.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.nodes import require_inspect


class SettingLine(NamedTuple):
    """A setting: `section.key`, its value as JSON, whether that is the default, and whether it is a secret.

    The value of a secret is masked. `origin` is `default`, `flag --NAME`, `environment NAME` or `file PATH`.
    """

    name: str
    value: str
    is_default: bool
    is_secret: bool
    origin: str = "default"


EFFECTIVE_SETTINGS: ComponentKey[tuple[SettingLine, ...]] = ComponentKey("effective_settings", lambda _: ())


async def settings_list(ctx: Context) -> tuple[SettingLine, ...]:
    """Return the settings of this node, in the order of the documentation. Raises PermissionDenied."""
    await refuse_former(ctx)
    await ctx.read(RequestScope(), require_inspect)
    return EFFECTIVE_SETTINGS.of(ctx.services)
