# SPDX-License-Identifier: Apache-2.0
"""Calls on the server's nodes and settings (own API), for service admins."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, verb
from limnos.client.values import NodesInfo, SettingInfo


class Nodes(Resource[S]):
    """Calls on the nodes of the server, and on the settings of the node that answers."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[NodesInfo]:
        """List the nodes with a heartbeat within the last day, and the lag of the search index."""
        return call("GET", f"{OWN}/nodes", answer=NodesInfo)

    @verb
    def settings(self) -> Flow[tuple[SettingInfo, ...]]:
        """List the effective settings of the node that answers; secrets are masked."""
        return call("GET", f"{OWN}/settings", answer=tuple[SettingInfo, ...], field="settings")
