# SPDX-License-Identifier: Apache-2.0
"""Holders of locations: names the object whose location stands in the way of a new one, to callers who may see it.

Must not decide whether a location is taken.
"""

from __future__ import annotations

from limnos.model.errors import LimnosError, LocationTaken
from limnos.names import display
from limnos.services.lookup.visibility import usable_catalogs_of, visible_objects_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


async def name_location_holder(ctx: Context, error: LocationTaken) -> LocationTaken:
    """Return the error with the kind and the path of the object that has the location; unchanged if the caller may not
    see the object.
    """
    own_context = Context(ctx.services, ctx.credential, ctx.request_id)  # the audit has the decisions of the request
    own_context.active = ctx.active
    try:
        catalogs = (await own_context.read(RequestScope(error.metalake), usable_catalogs_of)).catalogs
        if (catalog := catalogs.get(error.holder_id)) is not None:
            return _named(error, f"catalog {display.render_part(catalog)}")
        objects = await visible_objects_of(own_context, error.metalake, ids=(error.holder_id,))
    except LimnosError:
        return error
    holder = objects.get(error.holder_id)
    if holder is None:
        return error
    return _named(error, f"{holder.kind.word.replace('_', ' ')} {display.render(holder.path)}")


def _named(error: LocationTaken, holder: str) -> LocationTaken:
    return error.with_message(f"{error.message}. The other object is {holder}")
