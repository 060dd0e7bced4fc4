"""Objects that SQL++ makes in dataverses: which they are, how they are made and dropped, whatever their kind.

May import the rooms below. Knows no wire format. A mutation that finds an object in use says so with what uses it; whether the caller may
know that is decided afterwards, outside of the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from limnos.access.actions import Action
from limnos.model.errors import InUse
from limnos.model.kinds import Kind
from limnos.model.records import DeclaredRecord, TableRecord, ViewRecord
from limnos.names.display import render as shown
from limnos.services.sqlpp_names import scope_of

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.services.context import Context
    from limnos.services.scene import Scene
    from limnos.store.dependencies import Use
    from limnos.store.tx import Tx

MADE_HERE = "sqlpp"
"""The property of a view's record that says who made it."""


class StillUsed(InUse):
    """An object that something else needs: drop that first."""

    code = "still-used"

    def __init__(self, use: Use) -> None:
        super().__init__("Something else needs it", kind=use.used[0].word)
        self.use = use


def is_made_here(node: Node) -> bool:
    """Whether SQL++ made an object, so that dropping its dataverse drops it."""
    if node.kind is Kind.TABLE:
        return bool(cast("TableRecord", node.record).statements)
    if node.kind is Kind.VIEW:
        return MADE_HERE in cast("ViewRecord", node.record).properties
    return isinstance(node.record, DeclaredRecord)


async def user_told(ctx: Context, error: StillUsed) -> str:
    """Say what needs an object, as far as the caller may see it."""
    kind, path = error.use.user

    def sees(scene: Scene) -> bool:
        node, chain = scene.find(path, kind)
        return node is not None and scene.decide(Action(f"{kind.word}_load"), chain).allowed

    seen = await ctx.read(scope_of(ctx), sees)
    return f"{kind.word} {shown(path)}" if seen else f"a {kind.word} that you may not see"


def refuse_used(tx: Tx, node: Node) -> None:
    """Refuse to drop what something live needs. Raises StillUsed."""
    use = tx.dependencies.user_of(node.id)
    if use is not None:
        raise StillUsed(use)


def bury(tx: Tx, node: Node, *, keep_ms: int) -> None:
    """Drop an object that was confirmed; it can be brought back for so long."""
    if not keep_ms and node.kind in (Kind.TABLE, Kind.VIEW):
        tx.documents.delete(node.id)
    tx.nodes.drop(node, keep_ms=keep_ms)
