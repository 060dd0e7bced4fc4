"""What the binder asks of the world: which datasets, views, synonyms and functions there are.

May import the tree and `names`. A protocol and its values; who answers it (the tree of names, under the caller's rights) stands elsewhere.
`resolve` may raise whatever its maker raises for facts that are not there yet: the binder changes nothing outside and can run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from limnos.sqlpp.tree import Expression

Dataverse = tuple[str, ...]


class BoundDataset(Struct, frozen=True):
    """A dataset, under its own name."""

    dataverse: Dataverse
    name: str


class BoundView(Struct, frozen=True):
    """A view: its body is bound in the view's own dataverse."""

    dataverse: Dataverse
    name: str
    body: Expression


class BoundSynonym(Struct, frozen=True):
    """Another name for something."""

    dataverse: Dataverse
    name: str


class UserFunction(Struct, frozen=True):
    """A function that was written in SQL++. `parameters` None: any number, which the body sees as the array `args`."""

    dataverse: Dataverse
    name: str
    parameters: tuple[str, ...] | None
    body: Expression


class NameResolver(Protocol):
    """What there is."""

    def has_dataverse(self, dataverse: Dataverse) -> bool:
        """Whether there is such a dataverse."""
        ...

    def resolve(self, dataverse: Dataverse, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """What a name in a dataverse is, before synonyms are followed; a dataset or a view goes before a synonym."""
        ...

    def function(self, dataverse: Dataverse, name: str, *, arity: int) -> UserFunction | None:
        """A function of a dataverse that takes so many arguments; one of any number only if there is no exact one."""
        ...


class EmptyNameResolver:
    """A world of the builtin dataverse alone, with nothing in it: for constant expressions."""

    def has_dataverse(self, dataverse: Dataverse) -> bool:
        """Only `Default`."""
        return dataverse == ("Default",)

    def resolve(self, dataverse: Dataverse, name: str) -> None:
        """Nothing."""
        return

    def function(self, dataverse: Dataverse, name: str, *, arity: int) -> None:
        """Nothing."""
        return
