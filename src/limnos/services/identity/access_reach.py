# SPDX-License-Identifier: Apache-2.0
"""Access report of a user: the objects below an object that the user can access, counted and listed by path.

Must not know any wire format. The cost is proportional to the number of objects below. Objects with the same grants,
owner and container share one decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from limnos.access.actions import Action
from limnos.access.decide import is_allowed
from limnos.access.levels import LEVELS
from limnos.access.restrictions import binding_restrictions, deny_inherited_on
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.errors import BadRequest
from limnos.model.kinds import CONTAINERS, Kind
from limnos.model.principals import Subject
from limnos.model.privileges import escape_percent
from limnos.model.restrictions import Restriction
from limnos.services.identity.access_changes import decided_levels
from limnos.services.identity.access_objects import AccessQuestion, AccessTarget, scope_of_question, target_of
from limnos.services.identity.access_subtrees import SubtreeFacts, object_path
from limnos.services.identity.explain import absence_notes, is_disabled
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView

PAGE_MAX: Final = 1_000
EXAMINED_AT_ONCE: Final = 1_000
"""The number of objects after which other requests run. A decision counts as `DECISION_COST` of them."""
DECISION_COST: Final = 20


class ReachedObject(NamedTuple):
    """An object with its path from the catalog down, the user's levels, and whether rows or columns are restricted."""

    kind: Kind
    path: tuple[str, ...]
    levels: tuple[str, ...]
    is_restricted: bool


class ReachRequest(NamedTuple):
    """A request for a page of at most `limit` objects after the path `after` that a user, by default the caller, can
    access.
    """

    user: str | None = None
    after: tuple[str, ...] = ()
    limit: int = 100


class Reach(NamedTuple):
    """The access of a user to the objects below an object.

    `counts` maps access level and kind to the count of objects. `hidden` is the count of objects that the caller may
    not load. `looked` is the count of examined objects if the caller manages grants there, else only of those that the
    user may access. `following` is the path after which the next page begins; None at the end. `is_bounded` is true if
    more objects exist that were not examined. `notes` says that the object or the user does not exist.
    """

    user: str
    counts: Mapping[str, Mapping[Kind, int]]
    objects: list[ReachedObject]
    following: tuple[str, ...] | None
    looked: int
    hidden: int
    is_bounded: bool
    is_enforced: bool
    notes: tuple[str, ...] = ()


class _ReachView(NamedTuple):
    target: AccessTarget
    user: Subject
    caller: Subject
    is_manager: bool
    notes: tuple[str, ...]


async def access_reach(ctx: Context, question: AccessQuestion, *, request: ReachRequest) -> Reach:
    """Return a user's access levels on an object and the objects below it.

    Raises:
        PermissionDenied: The request is about another user, and the caller does not manage grants there.
        BadRequest: Objects of that kind contain no others.
    """
    scope = await scope_of_question(ctx, question)

    def read(request_view: RequestView) -> _ReachView:
        request_view.require_in_metalake_use()
        target = target_of(request_view, question, unknown=Kind.NAMESPACE)
        user = request.user or request_view.user
        if target.chain[0].kind not in CONTAINERS:
            raise BadRequest("Name a metalake, a catalog or a namespace: other objects have no objects below them")
        if user != request_view.user:
            request_view.require(Action.EXPLAIN_OTHERS, target.chain)
        is_manager = request_view.decide(Action.EXPLAIN_OTHERS, target.chain).allowed
        subject = request_view.subject_of(user)
        notes = absence_notes(request_view, target.chain, actions=(Action.EXPLAIN_OTHERS, Action.PRIVILEGE_GRANT))
        if not subject.member:
            notes.append(escape_percent(f"There is no user {user} in this metalake: check the spelling of the name."))
        if is_disabled(request_view, user):
            notes.append(
                escape_percent(
                    f"User {user} is disabled, so every request of theirs is refused: 'limnos user enable {user}'."
                )
            )
        return _ReachView(
            target=target,
            user=subject,
            caller=request_view.subject_of(request_view.user),
            is_manager=is_manager,
            notes=tuple(notes),
        )

    async def walk(reach_view: _ReachView) -> SubtreeFacts:
        facts = SubtreeFacts(with_rules=False)
        await facts.walk(ctx, (reach_view.target.chain,) if reach_view.target.chain[0].id > 0 else ())
        return facts

    # The rights are those of the later decision: the objects may have been created after a right was lost.
    reach_view, facts = await ctx.read_confirmed(scope, read, work=walk, identity=_reach_identity)
    return await _reach(reach_view, facts, request=request)


def _reach_identity(reach_view: _ReachView) -> object:
    """Return the ids of the requested object and its ancestors: the subtree that was read, whatever the rights."""
    return [link.id for link in reach_view.target.chain]


@dataclass(slots=True, kw_only=True)
class _ReachedClass:
    """Objects of one kind with the same decisions: the user's levels, whether rows or columns are restricted, whether
    the caller may load the objects, and their count.
    """

    kind: Kind
    levels: tuple[str, ...]
    is_restricted: bool
    is_visible: bool
    size: int = 0

    def entry(self, path: tuple[str, ...]) -> ReachedObject:
        """Return an object of the class."""
        return ReachedObject(self.kind, path, self.levels, self.is_restricted)


async def _reach(reach_view: _ReachView, facts: SubtreeFacts, *, request: ReachRequest) -> Reach:
    own_decisions = SubtreeDecisions(reach_view.user, facts)
    caller = own_decisions if reach_view.caller is reach_view.user else SubtreeDecisions(reach_view.caller, facts)
    classes: dict[object, _ReachedClass] = {}
    page = PageBuilder[ReachedObject](request.after, request.limit)
    object_count, examined = len(facts.objects), 0
    while facts.objects:
        if examined >= EXAMINED_AT_ONCE:
            examined = 0
            await asyncio.sleep(0)
        each = facts.objects.pop()  # to free all of them at the end would be one long step
        key = (
            own_decisions.class_of(each)
            if caller is own_decisions
            else (own_decisions.class_of(each), caller.class_of(each))
        )
        reach_class = classes.get(key)
        if reach_class is None:
            levels, is_restricted = own_decisions.levels(each)
            is_visible = bool(levels) and (not reach_view.target.is_enforced or caller.is_loaded(each))
            reach_class = classes[key] = _ReachedClass(
                kind=each.chain[0].kind, levels=levels, is_restricted=is_restricted, is_visible=is_visible
            )
            examined += DECISION_COST
        reach_class.size += 1
        examined += 1
        if reach_class.is_visible:
            page.add(each.chain, reach_class.entry)
    counts: dict[str, dict[Kind, int]] = {}
    for of_class in classes.values():
        for level in of_class.levels:
            by_kind = counts.setdefault(level, {})
            by_kind[of_class.kind] = by_kind.get(of_class.kind, 0) + of_class.size
    objects, following = page.result()
    user_count = sum(each.size for each in classes.values() if each.levels)
    return Reach(
        user=reach_view.user.user_name,
        counts=counts,
        objects=objects,
        following=following,
        looked=object_count if reach_view.is_manager else user_count,
        hidden=user_count - sum(each.size for each in classes.values() if each.is_visible),
        is_bounded=facts.is_bounded,
        is_enforced=reach_view.target.is_enforced,
        notes=reach_view.notes,
    )


class PageEntry(Protocol):
    """An object of a page."""

    @property
    def kind(self) -> Kind:
        """The kind of the object."""

    @property
    def path(self) -> tuple[str, ...]:
        """The path of the object from the catalog down."""


E = TypeVar("E", bound=PageEntry)


class PageBuilder(Generic[E]):
    """Collects the first objects of a page by path, without sorting all objects."""

    def __init__(self, after: tuple[str, ...], limit: int) -> None:
        self._after, self._limit = after, limit
        self._entries: list[E] = []
        self._last: tuple[str, ...] | None = None
        """The path of the last object that may be in the page, as far as is known."""
        self._is_cut = False
        self._container_paths: dict[int, tuple[str, ...]] = {}

    def add(self, chain: SecurableChain, entry: Callable[[tuple[str, ...]], E]) -> None:
        """Add an object, which `entry` builds from its path, in any order."""
        path = self._path_of(chain)
        if self._after and path <= self._after:
            return
        if self._last is not None and path > self._last:
            self._is_cut = True
            return
        self._entries.append(entry(path))
        if len(self._entries) > 4 * self._limit:
            self._cut()

    def _path_of(self, chain: SecurableChain) -> tuple[str, ...]:
        """Return the path of an object. The paths of containers are computed once."""
        if len(chain) < 2:
            return ()
        container = self._container_paths.get(chain[1].id)
        if container is None:
            container = self._container_paths[chain[1].id] = object_path(chain[1:])
        return (*container, chain[0].name)

    def _cut(self) -> None:
        """Keep the first objects, and all with the path of the last one: objects of two kinds may have one path."""
        self._entries.sort(key=lambda entry: (entry.path, entry.kind))
        if len(self._entries) > self._limit:
            self._last = last = self._entries[self._limit - 1].path
            first = [entry for entry in self._entries if entry.path <= last]
            self._is_cut = self._is_cut or len(first) < len(self._entries)
            self._entries = first

    def result(self) -> tuple[list[E], tuple[str, ...] | None]:
        """Return the page, and the path after which the next one begins; None at the end."""
        self._cut()
        return self._entries, self._entries[-1].path if self._is_cut else None


class DecidedObject(Protocol):
    """An object followed by its ancestors, and the id of its owner."""

    @property
    def chain(self) -> SecurableChain:
        """The object and its ancestors up to the metalake."""

    @property
    def owner_id(self) -> int | None:
        """The id of the object's owner."""


def decisions_for(
    subject: Subject, *, owners: dict[int, int], restrictions: Mapping[int, tuple[Restriction, ...]]
) -> SubtreeDecisions:
    """Return the decisions for a user by facts that the caller reads; `owners` may grow."""
    facts = SubtreeFacts(with_rules=False)
    facts.owners, facts.restrictions = owners, dict(restrictions)
    return SubtreeDecisions(subject, facts)


class SubtreeDecisions:
    """Decisions for one user on the objects of a subtree; objects with the same facts for the user share one
    decision.
    """

    def __init__(self, subject: Subject, facts: SubtreeFacts) -> None:
        self.subject = subject
        self.facts = facts
        self._sets = (*subject.allow_ids.values(), *subject.deny_ids.values())
        self._touched: frozenset[int] = frozenset().union(*self._sets)
        self._classes: dict[object, int] = {}
        self._container_classes: dict[int, int] = {}
        self._levels: dict[object, tuple[tuple[str, ...], bool]] = {}
        self._loaded: dict[object, bool] = {}

    def class_of(self, each: DecidedObject) -> object:
        """Return a key that is equal for objects with the same kinds and facts along their ancestors."""
        chain = each.chain
        return self._key(chain[0], each.owner_id, above=self._container_class(chain[1:]) if len(chain) > 1 else 0)

    def _container_class(self, chain: SecurableChain) -> int:
        """Return the number of a container's class."""
        link = chain[0]
        number = self._container_classes.get(link.id)
        if number is None:
            above = self._container_class(chain[1:]) if len(chain) > 1 else 0
            key = self._key(link, self.facts.owners.get(link.id), above=above)
            number = self._container_classes[link.id] = self._classes.setdefault(key, len(self._classes) + 1)
        return number

    def _key(self, link: ChainLink, owner_id: int | None, *, above: int) -> object:
        memberships = tuple([link.id in ids for ids in self._sets]) if link.id in self._touched else ()
        owner = owner_id if owner_id in self.subject.principal_ids else None
        return (above, link.kind, memberships, owner, link.id if link.id in self.facts.restrictions else 0)

    def levels(self, each: DecidedObject) -> tuple[tuple[str, ...], bool]:
        """Return the user's access levels on an object, and whether a read restriction applies to the user."""
        key = self.class_of(each)
        if key not in self._levels:
            self._levels[key] = self._decide_levels(each.chain)
        return self._levels[key]

    def is_loaded(self, each: DecidedObject) -> bool:
        """Return whether the user may load an object."""
        key = self.class_of(each)
        if key not in self._loaded:
            subject = deny_inherited_on(self.subject, each.chain, by_object=self.facts.restrictions)
            self._loaded[key] = is_allowed(
                subject, Action.METADATA_LOAD, chain=each.chain, owner_of=self.facts.owner_of
            )
        return self._loaded[key]

    def _decide_levels(self, chain: SecurableChain) -> tuple[tuple[str, ...], bool]:
        levels = decided_levels(self.subject, chain, facts=self.facts)
        binding = bool(levels) and bool(
            binding_restrictions(
                self.subject, chain, by_object=self.facts.restrictions, owner_of=self.facts.owner_of, active=None
            )
        )
        return tuple(level for level in LEVELS if level in levels), binding
