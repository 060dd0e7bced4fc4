# SPDX-License-Identifier: Apache-2.0
"""Nested namespaces: the conditions for changing the catalog property that allows them (seed 1, "Existing Name
Compatibility and Migration Guard").

Must not know any wire format. Namespaces nest unless a catalog's property forbids it. In a flat catalog, under the
separator policy `unrestricted`, a name may contain the separator. Where namespaces nest, such a name would be parsed as
several levels, so the property cannot change while one exists. The error is InvalidName, which has an HTTP status, and
not InvalidName of `names`, for which each protocol chooses one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from limnos.model.entities import Node
from limnos.model.errors import BadRequest, CannotStart
from limnos.model.records import CatalogRecord
from limnos.names.display import render
from limnos.names.errors import InvalidName
from limnos.names.parts import quote_for_message
from limnos.services.request.catalog_traits import is_nested
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.node_services import ComponentKey
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.names")
NAMES_SHOWN_MAX: Final = 5


@dataclass(slots=True)
class OtherSeparator:
    """The separator and policy that another node of the store started with later; "" if it has this node's."""

    key: str = ""

    def update(self, stored: str | None, *, defaults: RequestDefaults) -> None:
        """Compare what the store has with this node's separator and policy, and log a difference once."""
        check_key = separator_check_key(defaults.separator, defaults.separator_policy)
        other = "" if stored in (None, check_key) else str(stored)
        if other and other != self.key:
            log.warning(
                "another node of this store uses another separator: lists of this node leave out what it cannot spell; "
                "set names.separator to one value on all nodes and restart them",
                own=check_key,
                other=other,
            )
        self.key = other


OTHER_SEPARATOR: ComponentKey[OtherSeparator] = ComponentKey("other separator", lambda _: OtherSeparator())


def refuse_nesting_change(tx: Tx, catalog: Node, *, before: bool, after: bool, separator: str) -> None:
    """Refuse to change whether namespaces nest if an existing name or nested namespace prevents it.

    Raises InvalidName if a name contains the separator, BadRequest if a namespace is nested.
    """
    if after and not before:
        conflicts = tx.nesting.conflicts(catalog.id, separator, after=0, limit=NAMES_SHOWN_MAX + 1)
        if conflicts:
            raise separator_in_names_error(catalog.name, separator, names=[each.name for each in conflicts])
    if before and not after and (inner := tx.nesting.nested_one(catalog.id)) is not None:
        raise BadRequest(
            f"Namespaces of catalog {catalog.name} cannot be flat: {render(inner)} is in another one. Move or drop"
            " nested namespaces"
        )


def separator_check(tx: Tx, *, separator: str, policy: str) -> None:
    """Check that no stored name conflicts with a separator under a policy, and record that the check passed.

    Raises CannotStart if one does.
    """
    entries = [
        (node.name, count, name)
        for zone, count, name in tx.nesting.conflicts_anywhere(separator)
        if (node := tx.nodes.live(zone)) is not None
        and (policy == "restricted" or is_nested(cast("CatalogRecord", node.record)))
    ]
    if not entries:
        tx.nesting.free_of(separator_check_key(separator, policy))
        return
    catalog, count, name = entries[0]
    others = f", and so do names of {len(entries) - 1} other catalogs" if len(entries) > 1 else ""
    raise CannotStart(
        f"The separator {quote_for_message(separator)} cannot be used",
        why=(
            f"{count} names of namespaces in catalog {catalog} contain it, such as {quote_for_message(name)}, and would"
            f" be read as several levels{others}"
        ),
        advice=f"start with the previous separator and rename them with 'limnos names plan {catalog} --separator "
        f'"{separator}"\', or choose another one',
    )


def separator_check_key(separator: str, policy: str) -> str:
    """Return the key under which the store records that the check passed."""
    return f"{separator} {policy}"


def separator_in_names_error(catalog: str, separator: str, *, names: Sequence[str]) -> InvalidName:
    """Return the error for names that contain the separator, which prevents nesting."""
    text = ", ".join(map(quote_for_message, names[:NAMES_SHOWN_MAX])) + (", …" if len(names) > NAMES_SHOWN_MAX else "")
    return InvalidName(
        "separator-taken",
        f"Namespaces of catalog {catalog} cannot nest: names contain the separator {quote_for_message(separator)} and"
        f" would be read as several levels: {text}. See all with 'limnos names check {catalog}', and rename them with"
        f" 'limnos names plan {catalog}'; or choose another separator",
    )
