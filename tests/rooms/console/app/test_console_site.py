# SPDX-License-Identifier: Apache-2.0
"""Which rooms the console of a server leaves out of its pages."""

from __future__ import annotations

import pytest

from limnos.config.settings import Settings
from limnos.manifests.installed import installed_rooms
from limnos.manifests.switches import room_set
from limnos.rooms.console.app.console_site import console_site_of


@pytest.mark.room("lance", "sqlpp")
def test_pages_link_to_no_room_that_is_off_or_not_installed() -> None:
    """Without the folder of SQL++, pages show no statement and no link to its worksheet, as with the room off."""
    others = [each for each in installed_rooms().manifests if each.name != "sqlpp"]

    assert console_site_of(Settings(), room_set()).has_sqlpp
    assert not console_site_of(Settings(), room_set(["sqlpp"])).has_sqlpp
    assert not console_site_of(Settings(), room_set(manifests=others)).has_sqlpp
    assert console_site_of(Settings(), room_set(["lance"])).rooms_off == {"lance"}
