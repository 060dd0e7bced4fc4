# SPDX-License-Identifier: Apache-2.0
"""Presets: each includes the smaller one, and fits the kind of object and the type of its catalog."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.presets import PRESET_KINDS, PRESETS, parse_preset, preset_privileges
from limnos.model.privileges import Privilege, check_binding


def test_presets_grow() -> None:
    """A writer has all of a reader, an admin every privilege."""
    reader, writer, admin = (set(each) for each in PRESETS.values())

    assert reader < writer < admin == set(Privilege)


@pytest.mark.parametrize("kind", PRESET_KINDS)
@pytest.mark.parametrize("catalog_type", ["relational", "fileset", "messaging", "model", None])
def test_every_privilege_of_a_preset_can_be_granted(kind: Kind, catalog_type: str | None) -> None:
    """No preset has a privilege that its object cannot have."""
    for preset in PRESETS:
        for privilege in preset_privileges(preset, kind, catalog_type=catalog_type):
            check_binding(privilege, kind, catalog_type)


def test_privileges_of_other_catalogs_are_left_out() -> None:
    """A reader of a catalog of filesets gets no privilege on tables."""
    privileges = preset_privileges("reader", Kind.CATALOG, catalog_type="fileset")

    assert Privilege.READ_FILESET in privileges
    assert Privilege.SELECT_TABLE not in privileges


def test_reader_of_a_table_gets_one_privilege_on_it() -> None:
    """The privileges on containers are not privileges of the table."""
    assert preset_privileges("reader", Kind.TABLE, catalog_type="relational") == (Privilege.SELECT_TABLE,)


def test_unknown_preset_is_refused() -> None:
    """The message has the names of the presets."""
    with pytest.raises(BadRequest, match="reader, writer, admin"):
        parse_preset("owner")
