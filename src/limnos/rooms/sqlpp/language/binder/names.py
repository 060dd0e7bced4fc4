# SPDX-License-Identifier: Apache-2.0
"""The interface by which the binder resolves names: datasets, views, synonyms and functions.

The server implements it with the caller's rights. `resolve` may raise any error, for example for a cache miss: the
binder has no side effects and can run again.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from limnos.rooms.sqlpp.language.tree import Expression

Dataverse = tuple[str, ...]


class BoundDataset(Struct, frozen=True):
    """The name of a dataset, after synonyms were resolved."""

    dataverse: Dataverse
    name: str


class BoundView(Struct, frozen=True):
    """A view, whose body is bound in the view's own dataverse."""

    dataverse: Dataverse
    name: str
    body: Expression


class BoundSynonym(Struct, frozen=True):
    """The target of a synonym: a dataverse and a name."""

    dataverse: Dataverse
    name: str


class UserFunction(Struct, frozen=True):
    """A user-defined function in SQL++.

    If `parameters` is None, it accepts any number of arguments, which its body gets as the array `args`.
    """

    dataverse: Dataverse
    name: str
    parameters: tuple[str, ...] | None
    body: Expression


class NameResolver(Protocol):
    """The interface by which the binder resolves names; the caller implements it."""

    def has_dataverse(self, dataverse: Dataverse) -> bool:
        """Return whether a dataverse exists."""
        ...

    def resolve(self, dataverse: Dataverse, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Return the object with a name, without following synonyms.

        A dataset or a view takes precedence over a synonym.
        """
        ...

    def function(self, dataverse: Dataverse, name: str, *, arity: int) -> UserFunction | None:
        """Return the function of this arity, else the variadic one, else None."""
        ...


class EmptyNameResolver:
    """A name resolver without objects, for constant expressions. Only the dataverse `Default` exists."""

    def has_dataverse(self, dataverse: Dataverse) -> bool:
        """Return True for `Default` only."""
        return dataverse == ("Default",)

    def resolve(self, dataverse: Dataverse, name: str) -> None:
        """Return None: no dataset, view or synonym exists."""
        return

    def function(self, dataverse: Dataverse, name: str, *, arity: int) -> None:
        """Return None: no user-defined function exists."""
        return
