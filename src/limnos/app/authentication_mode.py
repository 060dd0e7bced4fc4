# SPDX-License-Identifier: Apache-2.0
"""The mode of authentication without the setting `access.authentication`.

It is `token`, and `simple` for a store that a release served whose default was `simple`, so that an upgrade locks
nobody out (decision record 0228).
"""

from __future__ import annotations

from limnos.config.settings import Settings, check_listens_safely
from limnos.model.errors import CannotStart
from limnos.store.backends.migrate import stored_authentication


def with_authentication(settings: Settings, database: str) -> Settings:
    """Return the settings with the mode that applies to the store in `database`, which must exist.

    Raises CannotStart if the server would listen beyond this machine for clients that are not authenticated.
    """
    if settings.access.authentication is not None:
        return settings
    mode = stored_authentication(database) or "token"
    access = settings.access.model_copy(update={"authentication": mode})
    result = settings.model_copy(update={"access": access})
    try:
        check_listens_safely(result)
    except ValueError as error:
        raise CannotStart(
            "Clients of this server would not be authenticated",
            why=f"the store was made by a release whose default was access.authentication = simple: {error}",
            advice="set access.authentication to token, or to simple with --insecure-listen",
        ) from None
    return result
