# SPDX-License-Identifier: Apache-2.0
"""The narrow scope of a search: the kinds of objects that USE_SCHEMA alone makes visible are among its candidates."""

from __future__ import annotations

import pytest

from limnos.model.kind_table import name_space_of
from limnos.model.kinds import Kind
from limnos.rooms.search.services.narrow_scopes import BROWSED_SPACES


@pytest.mark.parametrize("kind", [Kind.NAMESPACE, Kind.DATATYPE, Kind.SYNONYM])
def test_kinds_that_use_schema_shows_are_browsed(kind: Kind) -> None:
    """Namespaces, types and synonyms are visible with USE_SCHEMA, so every one below a granted namespace is a
    candidate.
    """
    assert name_space_of(kind) in BROWSED_SPACES


@pytest.mark.parametrize("kind", [Kind.FILESET, Kind.MODEL, Kind.FUNCTION])
def test_kinds_with_a_privilege_of_their_own_are_not_browsed(kind: Kind) -> None:
    """Objects that need a privilege of their own are candidates by that privilege."""
    assert name_space_of(kind) not in BROWSED_SPACES
