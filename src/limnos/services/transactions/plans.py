"""Plans: what the operations of a transaction come to, each decided on the scene as the earlier ones left it.

May import the rooms below and the services of what an operation is about. Knows no wire format, builds nothing and writes nothing:
metadata is `services.transactions.assembly`, the transaction's mutations are `services.transactions.deeds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.model.errors import BadRequest, CommitConflict
from limnos.model.kinds import Kind
from limnos.services.request.operation_errors import told_about
from limnos.services.request.places import place_of
from limnos.services.transactions.pending import Pending
from limnos.view.cold import Cold, for_each
from limnos.view.keys import ABSENT, document_key, owner_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.model.entities import Document, Node
    from limnos.model.permits import Permit
    from limnos.services.iceberg.dataset_fence import Guard
    from limnos.services.request.places import Place
    from limnos.services.request.scene import Scene
    from limnos.services.transactions.operations import Operation, Step
    from limnos.view.keys import Key


class Work(NamedTuple):
    """One table whose metadata is made or changed: by which steps, and on what."""

    steps: tuple[int, ...]
    document: Document | None
    place: Place
    view: tuple[Node, int] | None = None
    """Of a view that is changed: its node, and whom its text is by if it is written anew."""
    guard: Guard | None = None


class Plan(NamedTuple):
    """A transaction as it was decided at one moment."""

    steps: tuple[Step, ...]
    works: tuple[Work, ...]
    permit: Permit[None]

    @property
    def lines(self) -> list[int]:
        """The tables that are changed, by the numbers of their lines."""
        return [work.document.node_id for work in self.works if work.document is not None]


def plan_of(operations: Sequence[Operation], scene: Scene) -> Plan:
    """Decide on every operation, in order."""
    scene.require_in_use()
    if len(operations) > 1:
        _warm(operations, scene)
    pending = Pending(scene)
    steps = tuple([_look(each, pending) for each in operations])
    place = place_of(scene)
    by_table: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if step.table is not None:
            by_table.setdefault(step.table.id, []).append(number)
    works = tuple([_work(steps[numbers[0]], tuple(numbers), place=place) for numbers in by_table.values()])
    decisions = [decision for step in steps for decision in step.permit.decisions]
    return Plan(steps, works, scene.permit(None, *decisions))


def _work(first: Step, numbers: tuple[int, ...], *, place: Place) -> Work:
    changes_view = first.kind is Kind.VIEW and first.draft is None
    view = (cast("Node", first.table), first.writer_id) if changes_view else None
    return Work(numbers, first.document, place, view, first.guard)


def _look(operation: Operation, pending: Pending) -> Step:
    try:
        return operation.look(pending)
    except (BadRequest, CommitConflict) as error:
        kind, path = operation.targets[0]
        raise told_about(error, path, what=kind) from error


def _warm(operations: Sequence[Operation], scene: Scene) -> None:
    """Ask for everything at once that is not cached. Raises Cold."""
    targets = [target for each in operations for target in each.targets]
    found = for_each(targets, lambda target: scene.find(target[1], target[0]))
    view = scene.view
    wanted: dict[Key, int] = {}
    for node, chain in found:
        for link in chain:
            key = owner_key(link.id)
            if link.id > 0 and view.get(key) is ABSENT:
                wanted[key] = scene.zone_of(link.kind)
        if node is not None and view.get(document_key(node.id)) is ABSENT:
            wanted[document_key(node.id)] = scene.zone
    if wanted:
        raise Cold(wanted)
