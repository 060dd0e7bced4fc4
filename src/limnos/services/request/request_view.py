# SPDX-License-Identifier: Apache-2.0
"""Request view: a consistent read view for one caller, with resolved names, the caller's rights and decisions.

Synchronous: no `await` occurs between the access decision and the last cached fact of a response. Every method may
raise `CacheMiss`; the reader then runs again from the start.
"""

from __future__ import annotations

from typing import TypeVar, cast

from limnos.access.actions import Action
from limnos.access.authentication import Credential, user_of
from limnos.access.confinement import confine, has_fit_scope, unfit_second
from limnos.access.decide import allow_unchecked, decide
from limnos.access.restrictions import (
    LEAVING_ACTIONS,
    RESTRICTED_ACTIONS,
    BindingRestriction,
    binding_restrictions,
    refuse_leaving,
    refuse_restricted,
    restrictions_left,
)
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import NotFound, NotInUse, PermissionDenied
from limnos.model.kinds import SHARED_SPACE, Kind, KindGroup, ZoneKind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord, MetalakeRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.request.authorized_object import AuthorizedObject, E
from limnos.services.request.caller_view import CallerView
from limnos.services.request.catalog_traits import CatalogTraits, spaces_of, traits_of
from limnos.services.request.node_services import AuditedRequest, NodeServices
from limnos.services.request.request_scope import RequestScope, ResolvedScope, find_child, resolve_scope
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import ABSENT, document_key, name_key, node_key, path_key, restrictions_key

C = TypeVar("C")
_IN_CATALOG, _NAMESPACE = ZoneKind.CATALOG, Kind.NAMESPACE
"""Module constants: reading an enum member costs a tenth of a microsecond."""


class RequestView(CallerView):
    """A consistent view of the store at one moment, for one caller and one scope."""

    __slots__ = ("_missing", "audited_request", "defaults", "request_id", "scope", "zone")

    def __init__(
        self,
        services: NodeServices,
        scope: RequestScope,
        credential: Credential,
        request_id: str,
        *,
        refuse_disabled: bool = True,
        active: frozenset[str] | None = None,
    ) -> None:
        self.view = view = services.view
        self.scope = scope
        self.rules = services.rules
        self.defaults = services.defaults
        self.request_id = request_id
        self.audited_request: AuditedRequest | None = None
        self.user, self._token_root, token = user_of(view, credential, services.rules.trusts, services.store.time)
        self.operation_token = None if token is None or token.table_id is None else token
        self.second_user_id = 0 if token is None else token.second_user_id
        if self.operation_token is not None and not has_fit_scope(
            self.operation_token.table_id or 0, **scope._asdict()
        ):
            raise PermissionDenied("This token is only valid for maintenance operations")
        self.active = active
        self._memo = self._subject = None
        self._missing: NotFound | None = None
        resolved_scope: ResolvedScope | None = view.scopes.get(scope)
        if resolved_scope is None:
            resolved_scope, self._missing = self._resolve_scope(scope)
        self.settled = resolved_scope
        self.zone = resolved_scope.zones[-1]
        """The zone of the objects in the scope."""
        self._refuse_unfit(refuse_disabled=refuse_disabled)
        if self._missing is not None and self.decide(Action.CATALOG_LOAD, self.settled.outer).allowed:
            raise self._missing

    def _resolve_scope(self, scope: RequestScope) -> tuple[ResolvedScope, NotFound | None]:
        """Resolve the scope. For a missing catalog, return the scope of the metalake below an absent catalog, and the
        error.

        The caller gets that NotFound only with the right to load a catalog without grants of its own. Any other caller
        is refused with the same message as for an existing catalog. Raises NotFound for a missing metalake; its context
        names the caller, so that a protocol may respond 403 instead.
        """
        try:
            return resolve_scope(self.view, scope), None
        except NotFound as missing:
            if missing.kind == "metalake":
                if self.rules.access_enabled:
                    missing.context.update(user=self.user, metalake=scope.metalake)
                raise
            resolved_scope = resolve_scope(self.view, RequestScope(scope.metalake))
            return resolved_scope._replace(
                outer=(ChainLink.absent(Kind.CATALOG, scope.catalog or ""), *resolved_scope.outer)
            ), missing

    # -- caller ------------------------------------------------------------------------------------------------

    @property
    def maker_id(self) -> int | None:
        """The id of the owner of objects that the caller creates: the caller, or the metalake's owner if the caller is
        not a user of the metalake.
        """
        user_id = self.subject.user_id
        return self.owner_of(self.settled.outer[-1]) if user_id is None else user_id

    # -- objects -----------------------------------------------------------------------------------------------

    @property
    def metalake(self) -> Node:
        """The scope's metalake. Raises NotFound if the scope is the server."""
        if self.settled.metalake is None:
            raise NotFound("No metalake was named", kind="metalake")
        return self.settled.metalake

    @property
    def catalog(self) -> Node:
        """The scope's catalog.

        Raises NotFound if the scope has no catalog or it does not exist; PermissionDenied if it does not exist and the
        caller may not learn that.
        """
        if self.settled.catalog is None:
            if self._missing is not None:
                self.require(Action.CATALOG_LOAD, self.settled.outer)
            raise NotFound("No catalog was named", kind="catalog")
        return self.settled.catalog

    @property
    def traits(self) -> CatalogTraits:
        """The traits of the scope's catalog. Raises NotFound or PermissionDenied as `catalog` does."""
        traits = self.settled.traits
        return traits_of(cast("CatalogRecord", self.catalog.record)) if traits is None else traits

    @property
    def catalog_record(self) -> CatalogRecord:
        """The record of the scope's catalog. Raises NotFound or PermissionDenied as `catalog` does."""
        traits = self.settled.traits
        return cast("CatalogRecord", self.catalog.record) if traits is None else traits.record

    def space(self, kind: Kind) -> str:
        """Return the name space of a kind: in this catalog, or in the metalake for kinds outside catalogs."""
        traits = self.settled.traits
        if traits is not None:
            return traits.spaces[kind]
        return spaces_of(self.catalog_record.provider if kind.home is ZoneKind.CATALOG else "")[kind]

    def require_in_use(self) -> None:
        """Raise NotInUse below a disabled metalake or catalog, or PermissionDenied if the caller may not load that."""
        if self.settled.in_use:
            return
        self.require_in_metalake_use()
        if self.settled.catalog is not None and not self.catalog_record.in_use:
            self.require(Action.CATALOG_LOAD, self.settled.outer)
            raise NotInUse(f"Catalog {self.catalog.name} is disabled: enable it first", kind="catalog")

    def require_in_metalake_use(self) -> None:
        """Raise NotInUse below a disabled metalake, regardless of the catalog. Raises PermissionDenied if the caller
        may not load the metalake.
        """
        if not cast("MetalakeRecord", self.metalake.record).in_use:
            self.require(
                Action.METALAKE_LOAD, self.settled.outer[-1:]
            )  # a caller who may not know the metalake learns nothing of its state
            raise NotInUse(f"Metalake {self.metalake.name} is disabled: enable it first", kind="metalake")

    def find(self, levels: Levels, kind: Kind) -> tuple[Node | None, SecurableChain]:
        """Resolve the name of an object of the catalog to its node and its ancestors.

        Returns the node, and the chain of the object and its ancestors up to the metalake. If the object does not
        exist, returns None and the chain from its parent namespace; missing namespaces are absent links.
        """
        if self._missing is not None:
            return None, (
                *(ChainLink.absent(Kind.NAMESPACE, name) for name in reversed(levels[:-1])),
                *self.settled.outer,
            )
        paths = self.view.paths(self.zone)
        key = (levels, kind)
        path: tuple[int, SecurableChain, SecurableChain] | None = paths.get(key)
        if path is not None and path[2] is self.settled.outer:
            node = self.view.get(node_key(path[0]))
            if node is not ABSENT:
                return node, path[1]
        node_id, chain = self._walk(levels, kind)
        if node_id is None:
            return None, chain
        paths[key] = (node_id, chain, self.settled.outer)
        return self.node(node_id), chain

    def _walk(self, levels: Levels, kind: Kind) -> tuple[int | None, SecurableChain]:
        parent, last = self.catalog.id, len(levels) - 1
        spaces = self.traits.spaces
        namespace, own_space = spaces[_NAMESPACE], spaces[kind]
        links: list[ChainLink] = []
        for i, name in enumerate(levels):
            space = namespace if i < last else own_space
            node_id = self.view.get(name_key(parent, space, name))
            if node_id is ABSENT:
                steps = [*((namespace, level) for level in levels[i:last]), (own_space, levels[last])]
                raise CacheMiss({path_key(parent, tuple(steps)): self.zone})
            if node_id is None or ((i < last or kind is _NAMESPACE) and self._is_leaf(node_id, space)):
                links += [ChainLink.absent(Kind.NAMESPACE, missing) for missing in levels[i:last]]
                return None, (*reversed(links), *self.settled.outer)
            parent = node_id
            links.append(ChainLink(parent, kind if i == last else _NAMESPACE, name))
        return parent, (*reversed(links), *self.settled.outer)

    def _is_leaf(self, node_id: int, space: str) -> bool:
        """Return whether the node is not a namespace, which is possible only where namespaces and tables share a name
        space.
        """
        if space != SHARED_SPACE:
            return False
        return self.node(node_id).kind is not _NAMESPACE

    def look_up(
        self, kind: Kind, name: Levels, action: Action, *, probe: Action | None = None
    ) -> AuthorizedObject[Node]:
        """Find a node of any kind by its name, for a caller who may perform the action on it.

        Args:
            kind: The kind of the node.
            name: Empty for the scope's own metalake or catalog, one part for a metalake object, and the levels below
                the catalog otherwise.
            action: The action on the node.
            probe: An alternative action: a caller who may perform it also learns that the node is missing.

        Raises:
            NotFound: The object is missing, and the caller may perform the action on an object without grants of its
                own, or may perform `probe`.
            PermissionDenied: The caller may not perform the action. The message is the same whether or not the object
                exists.
        """
        node, chain = self.find(name, kind) if kind.home is _IN_CATALOG else self.find_outside(kind, name)
        if node is not None and node.kind is kind:
            return AuthorizedObject(node, chain, self.require(action, chain))
        # the name may belong to another kind, such as a view instead of a table
        above = chain if node is None else chain[1:]
        absent_chain = (ChainLink.absent(kind, name[-1]), *above)
        decision = self.decide(action, absent_chain)
        if (
            decision.allowed
            or (probe is not None and self.decide(probe, absent_chain).allowed)
            or self._may_learn_missing(absent_chain)
        ):
            raise self.missing(kind, name)
        raise self.refusal(decision)

    def find_parent(self, levels: Levels) -> tuple[Node, SecurableChain]:
        """Return the parent of a name: a namespace, or the catalog for a name of one level.

        Raises NotFound if the namespace does not exist, or PermissionDenied if the caller may not learn that.
        """
        if len(levels) == 1:
            return self.catalog, self.settled.outer
        node, chain = self.find(levels[:-1], _NAMESPACE)
        if node is None:
            node, chain, _ = self.look_up(_NAMESPACE, levels[:-1], Action.NAMESPACE_LOAD)
        return node, chain

    def _may_learn_missing(self, absent: SecurableChain) -> bool:
        """Return whether the caller may list the catalog's namespaces, and so learn that a namespace is missing."""
        namespace = absent[0] if absent[0].kind is Kind.NAMESPACE else absent[1]
        if namespace.kind is not Kind.NAMESPACE or namespace.id > 0:
            return False
        return self.decide(Action.NAMESPACE_LIST, self.settled.outer).allowed

    def judge(self, entity: E | None, kind: Kind, name: str, action: Action) -> AuthorizedObject[E]:
        """Decide on a user, group or role, as `look_up` does on a node. Raises NotFound, PermissionDenied."""
        link = ChainLink.absent(kind, name) if entity is None else ChainLink(entity.id, kind, name)
        chain = (link, *self.settled.outer[-1:])
        decision = self.require(action, chain)
        if entity is None:
            raise self.missing(kind, (name,))
        return AuthorizedObject(entity, chain, decision)

    def missing(self, kind: Kind, name: Levels) -> NotFound:
        """Return the error for an object that does not exist."""
        if kind.home is ZoneKind.CATALOG:
            return NotFound(f"{kind.word.capitalize()} does not exist: {render(name)}", kind=kind.word)
        text = f"{kind.word.capitalize().replace('_', ' ')} {name[0]} does not exist in metalake {self.metalake.name}"
        how = "add it first" if kind.form is KindGroup.PRINCIPAL else "create it first"
        return NotFound(f"{text}: {how}", kind=kind.word)

    def find_outside(self, kind: Kind, name: Levels) -> tuple[Node | None, SecurableChain]:
        """Resolve the scope's own metalake or catalog, or a metalake object such as a tag.

        Raises as `catalog`, for the scope's own catalog, whose `name` is empty.
        """
        if kind is Kind.CATALOG and (self.settled.catalog is not None or not name):
            return self.catalog, self.settled.outer
        outer = self.settled.outer[-1:]
        if kind is Kind.METALAKE:
            return self.metalake, outer
        node = find_child(self.view, self.metalake.id, kind.word, name[0], zone=self.metalake.id)
        return (None, outer) if node is None else (node, (ChainLink(node.id, kind, name[0]), *outer))

    def is_taken(self, parent_id: int, kind: Kind, name: str) -> bool:
        """Return whether a name is taken by a cached object.

        A name that is not cached counts as free: the mutation checks it again.
        """
        return isinstance(self.view.get(name_key(parent_id, self.space(kind), name)), int)

    def holder_of(self, parent_id: int, kind: Kind, name: str) -> Kind | None:
        """Return the kind of the object with a name; None if free or not cached. The mutation checks it again."""
        node_id = self.view.get(name_key(parent_id, self.space(kind), name))
        if not isinstance(node_id, int):
            return None
        node = self.view.get(node_key(node_id))
        return node.kind if isinstance(node, Node) else None

    def node(self, node_id: int) -> Node:
        """Return a node of the scope's zone by its id."""
        key = node_key(node_id)
        result = self.view.get(key)
        if result is ABSENT:
            raise CacheMiss({key: self.zone})
        return cast("Node", result)

    def document(self, node_id: int) -> MetadataDocument:
        """Return the document of a table or view by its id."""
        key = document_key(node_id)
        result = self.view.get(key)
        if result is ABSENT:
            raise CacheMiss({key: self.zone})
        return cast("MetadataDocument", result)

    # -- decisions -------------------------------------------------------------------------------------------

    def decide(self, action: Action, chain: SecurableChain) -> Decision:
        """Decide for the caller. The decision is cached until the access revision changes.

        Decisions on a missing object, with active roles, or for the token of a maintenance operation are not cached.
        """
        is_own = self.active is None and self.operation_token is None and not self.second_user_id
        if not is_own or not chain or chain[0].id <= 0:
            return self.decide_for(self.user, action, chain)
        memo = self.memo if self._memo is None else self._memo  # avoids a property call: lists decide for each item
        key = (self.user, action, chain[0].id)
        decision: Decision | None = memo.get(key)
        if decision is None:
            decision = memo[key] = self.decide_for(self.user, action, chain)
        return decision

    def decide_for(self, user: str, action: Action, chain: SecurableChain) -> Decision:
        """Decide for any user, without caching. For the caller, the request's active roles and token apply."""
        decision = self._decide_unconfined(user, action, chain=chain)
        if self.second_user_id and user == self.user and decision.allowed:
            second = self.second_user
            decision = (
                unfit_second(decision) if second is None else self._decide_unconfined(second, action, chain=chain)
            )
        token = self.operation_token
        if token is None or token.table_id is None or user != self.user:
            return decision
        return confine(decision, action, chain=chain, table_id=token.table_id)

    def _decide_unconfined(self, user: str, action: Action, *, chain: SecurableChain) -> Decision:
        subject = self.subject if user == self.user else self.subject_of(user)
        if not self.rules.access_enabled:
            return allow_unchecked(subject, action, chain, revision=self.stamps)
        try:
            decision = decide(subject, action, chain, self.owner_of, revision=self.stamps)
        except CacheMiss:
            self.want_owners(chain)
            raise
        if not decision.allowed or action not in RESTRICTED_ACTIONS:
            return decision
        binding = self.bindings_of(user, chain)
        if binding:
            return refuse_restricted(decision, binding, chain=chain)
        return self._decide_leaving(user, action, chain=chain, decision=decision)

    def _decide_leaving(self, user: str, action: Action, *, chain: SecurableChain, decision: Decision) -> Decision:
        """Refuse to drop, rename or move a restricted object to a user who may not restrict it."""
        if action not in LEAVING_ACTIONS or self.settled.catalog is None:
            return decision
        restrictions = require_fact(self.view, restrictions_key(self.zone), zone=self.zone).by_object
        left = restrictions_left(action, chain, by_object=restrictions) if restrictions else ()
        for each in left:
            right = self.decide_for(user, Action.RESTRICT, chain[each.at :])
            if not right.allowed:
                return refuse_leaving(decision, left, chain=chain, lacking=right)
        return decision

    def bindings_of(self, user: str, chain: SecurableChain) -> tuple[BindingRestriction, ...]:
        """Return the restrictions that apply to a user on the first object of `chain`; none with access control off."""
        if not self.rules.access_enabled or self.settled.catalog is None:
            return ()
        restrictions = require_fact(self.view, restrictions_key(self.zone), zone=self.zone).by_object
        if not restrictions:
            return ()
        subject, active = (self.subject, self.active) if user == self.user else (self.subject_of(user), None)
        try:
            return binding_restrictions(subject, chain, by_object=restrictions, owner_of=self.owner_of, active=active)
        except CacheMiss:
            self.want_owners(chain)
            raise

    def require(self, action: Action, chain: SecurableChain) -> Decision:
        """Decide for the caller. Raises PermissionDenied for a refusal, else NotFound for a missing catalog."""
        decision = self.decide(action, chain)
        if not decision.allowed:
            raise self.refusal(decision)
        if self.audited_request is not None and self.audited_request.decided is not None:
            self._record_decision(decision)
        if self._missing is not None and self.settled.outer[0] in chain:
            raise self._missing
        return decision

    def _record_decision(self, decision: Decision) -> None:
        """Record a decision of the request for the audit."""
        audited_request = self.audited_request
        if audited_request is not None and audited_request.decided is not None:
            audited_request.decided.append(decision)
            if self.settled.metalake is not None:
                audited_request.user_id = self.subject.user_id

    def refusal(self, decision: Decision) -> PermissionDenied:
        """Build the error for a refusing decision, and record the decision for the audit."""
        self._record_decision(decision)
        return PermissionDenied(decision.message(), decision=decision)

    def permit(self, command: C, *decisions: Decision, zone: int | None = None) -> Permit[C]:
        """Create a permit, which a mutation requires, from allowed decisions.

        `zone` is the zone that the mutation writes to; None for the zone of the scope. Raises PermissionDenied for a
        missing or refusing decision.
        """
        if not decisions:
            raise PermissionDenied("No permit without an allowed decision")
        for decision in decisions:
            if not decision.allowed:
                raise PermissionDenied("No permit without an allowed decision")
        actor_id = None if self.settled.metalake is None else self.subject.user_id
        return Permit(
            command=command,
            decisions=decisions,
            zone=self.zone if zone is None else zone,
            stamps=self.view.access_stamps(self.settled.zones),
            actor=self.user,
            actor_id=actor_id,
            request_id=self.request_id,
        )
