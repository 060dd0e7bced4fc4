# SPDX-License-Identifier: Apache-2.0
"""Calls on the change feed (own API).

The client's own timeout must be longer than `wait_s`.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import ChangesPage


class Changes(Resource[S]):
    """Calls that read the change feed of the metalake or of one catalog: the changes that are visible to the caller."""

    @verb
    def read(
        self,
        *,
        after: str | None = None,
        catalog: str | None = None,
        limit: int | None = None,
        wait_s: int | None = None,
    ) -> Flow[ChangesPage]:
        """Return the changes after a feed position: `next` of the previous page, `now`, or None or `oldest` for all
        stored changes.

        `wait_s`: seconds, at most 60, for which the server waits for the first change.
        """
        of_catalog = "" if catalog is None else segments("catalogs", catalog)
        path = f"{OWN}{segments('metalakes', self.scope.metalake)}{of_catalog}/changes"
        numbers = {"limit": limit, "wait_s": wait_s}
        query = {"after": after} | {name: None if value is None else str(value) for name, value in numbers.items()}
        return call("GET", path, answer=ChangesPage, query=query)
