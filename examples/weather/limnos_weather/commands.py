# SPDX-License-Identifier: Apache-2.0
"""The client's resource and the command of the room."""

from __future__ import annotations

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_fields
from limnos.client.flow import Flow, Resource, S, call, verb


class Weather(Resource[S]):
    """The weather."""

    @verb
    def load(self) -> Flow[dict[str, object]]:
        """Return the weather."""
        return call("GET", "/api/weather", answer=dict[str, object])


def show(*, common: CommonFlags = DEFAULTS) -> None:
    """Show the weather."""
    with common.client() as client:
        show_fields(client.weather.load(), output_format=common.output_format)
