# SPDX-License-Identifier: Apache-2.0
"""Narrow scopes: an upper bound of the objects visible to a caller with few rights.

Makes no access decisions: the objects of a scope are candidates, on which a search decides as on all others. The
full-text index does not contain rights, so in a large lake none of its first matches may be visible to such a caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, partial
from typing import Final, NamedTuple

from limnos.access.actions import Action, actions_named
from limnos.access.policy import POLICY
from limnos.access.rules import PrivilegeRule
from limnos.model.kind_table import name_space_of
from limnos.model.kinds import NAMESPACE_OBJECTS, SHARED_SPACE, Kind
from limnos.model.privileges import Privilege
from limnos.rooms.search.services.indexed_words import whole_text
from limnos.rooms.search.services.joined_texts import JoinedTexts
from limnos.rooms.search.services.spelling import spelled_words
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.store.activity.search_index import IndexedText, texts_read
from limnos.store.objects.name_search import (
    NarrowScope,
    SearchCandidate,
    containers_below_read,
    narrow_read,
    owned_ids_read,
)
from limnos.store.sql import Load
from limnos.view.cache_miss import require_fact
from limnos.view.keys import listing_key

SCOPE_MAX: Final = 5_000
"""The maximum number of objects in a narrow scope."""
ROOTS_MAX: Final = 2_000
"""The maximum number of objects with grants to the caller, and of owned objects; with more, the scope is not narrow."""
_LOADS: Final = actions_named("load", *NAMESPACE_OBJECTS)
_LEAVES: Final = [leaf for action in _LOADS.values() for leaf in POLICY[action].leaves()]
_USES: Final = frozenset({Privilege.USE_CATALOG, Privilege.USE_SCHEMA})
LOADING: Final = frozenset(leaf.privilege for leaf in _LEAVES if isinstance(leaf, PrivilegeRule)) - _USES
"""Privileges that make objects in namespaces visible. Namespaces themselves need USE_SCHEMA."""
BROWSED_SPACES: Final = tuple(
    sorted(
        {
            SHARED_SPACE,
            name_space_of(Kind.NAMESPACE),
            *(
                name_space_of(kind)
                for kind, action in _LOADS.items()
                if POLICY[action] == POLICY[Action.NAMESPACE_LOAD]
            ),
        }
    )
)
"""Name spaces of the kinds that USE_SCHEMA alone makes visible."""


class NarrowObjects:
    """A superset of the objects visible to a caller with few rights. Their indexed words are read lazily."""

    def __init__(self, candidates: Sequence[SearchCandidate]) -> None:
        self.candidates = candidates
        self._texts: list[IndexedText | None] | None = None

    async def having_any(self, ctx: Context, words: Iterable[str], *, names_only: bool) -> list[SearchCandidate]:
        """Return the objects whose indexed words match any of the words.

        The caller checks the other words, which may match names of ancestors.
        """
        await self._read_texts(ctx)
        searched_texts = self._names if names_only else self._whole_texts
        return [
            self.candidates[place] for place in sorted({each for word in words for each in searched_texts.having(word)})
        ]

    async def known_words(self, ctx: Context, words: Iterable[str]) -> list[str]:
        """Return the words that occur in an object and that a spelling correction may suggest, in the given order."""
        await self._read_texts(ctx)
        present_words = [word for word in words if word in self._whole_words]
        suggested = spelled_words(present_words)
        return [word for word in present_words if word in suggested]

    async def _read_texts(self, ctx: Context) -> None:
        if self._texts is None:
            texts = await ctx.look_up(partial(texts_read, [each.id for each in self.candidates]))
            self._texts = [texts.get(each.id) for each in self.candidates]

    @cached_property
    def _names(self) -> JoinedTexts:
        return JoinedTexts(["" if each is None else each.name for each in self._texts or ()])

    @cached_property
    def _whole_texts(self) -> JoinedTexts:
        return JoinedTexts(["" if each is None else whole_text(each) for each in self._texts or ()])

    @cached_property
    def _whole_words(self) -> set[str]:
        return self._whole_texts.words()


class RightRoots(NamedTuple):
    """The objects on which grants allow a caller to load objects (`loading`) or to use namespaces (`browsing`).

    `principals` are the caller and the caller's groups, which may own objects. `wide` are the ids of the metalake and
    its usable catalogs: with a right on one of them the scope is not narrow.
    """

    loading: frozenset[int]
    browsing: frozenset[int]
    principals: frozenset[int]
    wide: frozenset[int]
    metalake_id: int


def roots_of(request_view: RequestView, metalake_id: int, *, catalogs: Collection[int]) -> RightRoots | None:
    """Return the objects on which the caller has grants; None if the scope is not narrow.

    It is not narrow if access control is off, if there are too many objects, or if the caller has a grant on the
    metalake or a usable catalog, or owns it.
    """
    if not request_view.rules.access_enabled:
        return None
    subject = request_view.subject
    if _owns_all(request_view, metalake_id, catalogs=catalogs):
        return None
    loading = frozenset[int]().union(*(ids for privilege, ids in subject.allow_ids.items() if privilege in LOADING))
    browsing = subject.allow_ids.get(Privilege.USE_SCHEMA, frozenset())
    wide = frozenset({metalake_id, *catalogs})
    if len(loading) + len(browsing) > ROOTS_MAX or not wide.isdisjoint(loading) or not wide.isdisjoint(browsing):
        return None
    return RightRoots(
        loading=loading, browsing=browsing, principals=subject.principal_ids, wide=wide, metalake_id=metalake_id
    )


def _owns_all(request_view: RequestView, metalake_id: int, *, catalogs: Collection[int]) -> bool:
    """Return whether the caller owns the metalake or one of its usable catalogs, and may so load all objects below."""
    owners = request_view.subject.principal_ids
    if request_view.owner_of(request_view.settled.outer[-1]) in owners:
        return True
    listing = require_fact(
        request_view.view, listing_key(metalake_id, "catalog", Kind.CATALOG), zone=metalake_id
    )  # the fact of the usable catalogs
    return any(owner in owners and at in catalogs for at, owner in zip(listing.ids, listing.owners, strict=True))


async def narrow_objects(ctx: Context, roots: RightRoots | None) -> NarrowObjects | None:
    """Return all objects that grants on these roots, or ownership, can make visible; None if there are too many, or
    `roots` is None.
    """
    return None if roots is None else await ctx.look_up(partial(_objects_read, roots))


def _objects_read(roots: RightRoots) -> Load[NarrowObjects | None]:
    owned_ids: set[int] = set()
    for principal_id in roots.principals:
        owned_ids.update((yield from owned_ids_read(principal_id, limit=ROOTS_MAX + 1)))
        if len(owned_ids) > ROOTS_MAX or not roots.wide.isdisjoint(owned_ids):
            return None
    entered = roots.loading | owned_ids
    inner = yield from containers_below_read(entered, limit=SCOPE_MAX + 1)
    browsed = yield from containers_below_read(roots.browsing, limit=SCOPE_MAX + 1)
    if max(len(inner), len(browsed)) > SCOPE_MAX:
        return None
    scope = NarrowScope(
        inner | {roots.metalake_id}, browsed, inner | browsed | entered | roots.browsing, BROWSED_SPACES
    )
    candidates = yield from narrow_read(scope, limit=SCOPE_MAX + 1)
    if len(candidates) > SCOPE_MAX:
        return None
    return NarrowObjects(candidates)
