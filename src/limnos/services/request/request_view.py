"""One moment of the view as one caller sees it: names resolved, the caller's rights, decisions.

May import `names`, `access`, `view` and `model`. Synchronous: from the decision to the last cached fact of an answer
nothing is awaited. Every method may raise `CacheMiss`; the reader is then run again from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from limnos.access.actions import Action
from limnos.access.authentication import user_of
from limnos.access.decide import allow_unchecked, decide
from limnos.access.restrictions import RESTRICTED_ACTIONS, binding_restrictions, refuse_restricted
from limnos.access.subjects import principal_of, subject_of
from limnos.model.decisions import ChainLink, Decision
from limnos.model.entities import MetadataDocument, Node, Principal, RoleEntity
from limnos.model.errors import AuthenticationFailed, NotFound, NotInUse, PermissionDenied
from limnos.model.kinds import ROOT_ID, SHARED_SPACE, Kind, KindGroup, ZoneKind
from limnos.model.permits import Permit
from limnos.model.principals import Subject
from limnos.names.iceberg import render
from limnos.services.request.catalog_traits import spaces_of, traits_of
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import ABSENT, document_key, name_key, node_key, owner_key, path_key, restrictions_key

if TYPE_CHECKING:
    from limnos.access.authentication import Credential
    from limnos.access.restrictions import BindingRestriction
    from limnos.model.decisions import SecurableChain
    from limnos.model.records import CatalogRecord, MetalakeRecord
    from limnos.names.path import Levels
    from limnos.services.request.catalog_traits import CatalogTraits
    from limnos.services.request.node_services import AuditedRequest, NodeServices
    from limnos.view.view import DerivedValues, StoreView

C = TypeVar("C")
E = TypeVar("E", Node, Principal, RoleEntity)


class RequestScope(NamedTuple):
    """What a request is about: the server (both None), a metalake, or a catalog of it."""

    metalake: str | None = None
    catalog: str | None = None


class AuthorizedObject(NamedTuple, Generic[E]):
    """An object that is there, the links from it up to the metalake, and the decision that the caller may do it."""

    entity: E
    chain: SecurableChain
    decision: Decision


class ResolvedScope(NamedTuple):
    """A resolved scope: its nodes, its zones in lock order, and the links above whatever lies in it."""

    metalake: Node | None
    catalog: Node | None
    zones: tuple[int, ...]
    outer: SecurableChain
    in_use: bool = False
    """Both are in use, as far as they are named: nothing else has to be asked."""
    traits: CatalogTraits | None = None
    """What follows from the catalog's record; None where no catalog is named, or it is missing."""


SERVER_SCOPE = ResolvedScope(None, None, (ROOT_ID,), ())
_IN_CATALOG, _NAMESPACE = ZoneKind.CATALOG, Kind.NAMESPACE
"""Names of their own: to take one from its enum costs a tenth of a microsecond."""
_ZONE_PLACES = {kind: {ZoneKind.SERVER: 0, ZoneKind.METALAKE: 1, ZoneKind.CATALOG: 2}[kind.home] for kind in Kind}
"""Where in a scope's zones the clock of a kind stands."""


def cached_scope(view: StoreView, scope: RequestScope) -> ResolvedScope | None:
    """Return what the scope last resolved to, if no metalake or catalog changed since."""
    found: ResolvedScope | None = view.scopes.get(scope)
    return found


def scope_zones(view: StoreView, scope: RequestScope) -> tuple[int, ...]:
    """Return the zones a scope needs as far as the view can tell; fewer when a name is not cached or not there."""
    settled: ResolvedScope | None = view.scopes.get(scope)  # not by `cached_scope`: every request passes here
    if settled is not None:
        return settled.zones
    if scope.metalake is None:
        return SERVER_SCOPE.zones
    metalake_id = view.get(name_key(ROOT_ID, "metalake", scope.metalake))
    if not isinstance(metalake_id, int):
        return (ROOT_ID,)
    catalog_id = ABSENT if scope.catalog is None else view.get(name_key(metalake_id, "catalog", scope.catalog))
    return (ROOT_ID, metalake_id, catalog_id) if isinstance(catalog_id, int) else (ROOT_ID, metalake_id)


def resolve_scope(view: StoreView, scope: RequestScope) -> ResolvedScope:
    """Resolve a scope. Raises NotFound for a metalake or catalog, Cold."""
    settled = cached_scope(view, scope)
    if settled is not None:
        return settled
    if scope.metalake is None:
        return SERVER_SCOPE
    metalake = _find_child(view, ROOT_ID, "metalake", scope.metalake, zone=ROOT_ID)
    if metalake is None:
        raise NotFound(f"Metalake {scope.metalake} does not exist", kind="metalake")
    link = ChainLink(metalake.id, Kind.METALAKE, metalake.name)
    in_use = cast("MetalakeRecord", metalake.record).in_use
    settled = ResolvedScope(metalake, None, (ROOT_ID, metalake.id), (link,), in_use)
    if scope.catalog is not None:
        catalog = _find_child(view, metalake.id, "catalog", scope.catalog, zone=metalake.id)
        if catalog is None:
            raise NotFound(f"Catalog {scope.catalog} does not exist in metalake {scope.metalake}", kind="catalog")
        outer = (ChainLink(catalog.id, Kind.CATALOG, catalog.name), link)
        traits = traits_of(cast("CatalogRecord", catalog.record))
        in_use = in_use and traits.record.in_use
        settled = ResolvedScope(metalake, catalog, (ROOT_ID, metalake.id, catalog.id), outer, in_use, traits)
    view.scopes[scope] = settled
    return settled


def _find_child(view: StoreView, parent_id: int, space: str, name: str, *, zone: int) -> Node | None:
    node_id = view.get(name_key(parent_id, space, name))
    if node_id is None:
        return None
    node = ABSENT if node_id is ABSENT else view.get(node_key(node_id))
    if node is ABSENT:
        raise CacheMiss({path_key(parent_id, ((space, name),)): zone})
    return node


class RequestView:
    """A consistent moment of the view, for one caller and one scope."""

    __slots__ = (
        "_missing",
        "_subject",
        "_token_root",
        "active",
        "asker",
        "defaults",
        "request_id",
        "rules",
        "scope",
        "settled",
        "user",
        "view",
        "zone",
    )

    def __init__(
        self, services: NodeServices, scope: RequestScope, credential: Credential, request_id: str, *, refuse_disabled: bool = True,
        active: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        self.view = view = services.view
        self.scope = scope
        self.rules = services.rules
        self.defaults = services.defaults
        self.request_id = request_id
        self.asker: AuditedRequest | None = None
        self.user, self._token_root = user_of(view, credential, services.rules.trusts, services.store.time)
        self.active = active
        self._subject: Subject | None = None
        self._missing: NotFound | None = None
        settled: ResolvedScope | None = view.scopes.get(scope)
        if settled is None:
            settled, self._missing = self._settle(scope)
        self.settled = settled
        self.zone = settled.zones[-1]
        """The zone of what lies in the scope."""
        self._refuse_unfit(refuse_disabled=refuse_disabled)
        if self._missing is not None and self.decide(Action.CATALOG_LOAD, self.settled.outer).allowed:
            raise self._missing

    def _settle(self, scope: RequestScope) -> tuple[ResolvedScope, NotFound | None]:
        """Resolve the scope. A missing catalog is taken as one without grants of its own, so that the first decision speaks.

        Who may not know that it is missing gets the refusal, and the words, of whatever was asked; who passes a decision on
        it learns that it is missing. A missing metalake is the protocols' affair: the context tells them who asked, so that
        one may answer 403.
        """
        try:
            return resolve_scope(self.view, scope), None
        except NotFound as missing:
            if missing.kind == "metalake":
                if self.rules.access_enabled:
                    missing.context.update(user=self.user, metalake=scope.metalake)
                raise
            found = resolve_scope(self.view, RequestScope(scope.metalake))
            return found._replace(outer=(ChainLink.absent(Kind.CATALOG, scope.catalog or ""), *found.outer)), missing

    # -- who ---------------------------------------------------------------------------------------------------

    @property
    def subject(self) -> Subject:
        """The caller's groups and roles in this metalake. Raises Forbidden for an active role that the caller does not hold."""
        if self._subject is None:
            found = self.subject_of(self.user)
            if self.active is not None and found.member and self.rules.access_enabled:
                found = self._narrowed(found, self.active)
            self._subject = found
        return self._subject

    def _narrowed(self, subject: Subject, active: frozenset[str]) -> Subject:
        memo = self.view.memo(self.settled.zones[1])
        key = ("narrowed", self.user)  # the latest only: each may be large
        found: tuple[frozenset[str], Subject] | None = memo.get(key)
        if found is None or found[0] != active:
            found = memo[key] = (active, subject.narrowed(active))
        return found[1]

    def subject_of(self, user: str) -> Subject:
        """Return any user's groups and roles in this metalake, remembered until access moves."""
        if self.settled.metalake is None:
            return Subject.of(None, user, service_admin=user in self.rules.service_admins, member=False)
        memo = self.view.memo(self.settled.zones[1])
        found: Subject | None = memo.get(user)
        if found is None:
            admin = user in self.rules.service_admins
            found = memo[user] = subject_of(self.view, self.settled.zones[1], user, service_admin=admin)
        return found

    @property
    def memo(self) -> DerivedValues:
        """What was derived from the access facts of this scope's zones."""
        return self.view.memo(self.settled.zones[-1])

    @property
    def maker_id(self) -> int | None:
        """Who owns what the caller makes: the caller; who is no user (access control off), the metalake's owner."""
        user_id = self.subject.user_id
        return self.owner_of(self.settled.outer[-1]) if user_id is None else user_id

    def _refuse_unfit(self, *, refuse_disabled: bool) -> None:
        """Refuse a disabled user everywhere, and the token of an earlier user of the name, also with access control off."""
        if self.settled.metalake is None:
            return
        memo = self.view.memo(self.settled.zones[1])
        key = ("standing", self.user)
        standing: tuple[bool, int] | None = memo.get(key)
        if standing is None:
            principal = principal_of(self.view, self.settled.zones[1], Kind.USER, self.user)
            standing = (True, 0) if principal is None else (principal.enabled, principal.tokens_from)
            memo[key] = standing
        enabled, tokens_from = standing
        if self._token_root < tokens_from:
            raise AuthenticationFailed(
                f"The token is one of an earlier user {self.user} of metalake {self.settled.metalake.name}, who was removed: "
                "ask a service admin for a new one",
                was_right=True,
            )
        if refuse_disabled and not enabled:
            raise PermissionDenied(
                f"User {self.user} is disabled in metalake {self.settled.metalake.name}: ask its administrator"
            )

    # -- where -------------------------------------------------------------------------------------------------

    @property
    def metalake(self) -> Node:
        """The scope's metalake."""
        if self.settled.metalake is None:
            raise NotFound("No metalake was named", kind="metalake")
        return self.settled.metalake

    @property
    def catalog(self) -> Node:
        """The scope's catalog."""
        if self.settled.catalog is None:
            if self._missing is not None:
                self.require(Action.CATALOG_LOAD, self.settled.outer)
            raise NotFound("No catalog was named", kind="catalog")
        return self.settled.catalog

    @property
    def traits(self) -> CatalogTraits:
        """What follows from the catalog's record. Raises NotFound, Forbidden where there is no catalog."""
        traits = self.settled.traits
        return traits_of(cast("CatalogRecord", self.catalog.record)) if traits is None else traits

    @property
    def catalog_record(self) -> CatalogRecord:
        """What the catalog's record says."""
        traits = self.settled.traits
        return cast("CatalogRecord", self.catalog.record) if traits is None else traits.record

    def space(self, kind: Kind) -> str:
        """Return the name space of a kind where it lies: in this catalog, or beside the tree."""
        traits = self.settled.traits
        if traits is not None:
            return traits.spaces[kind]
        return spaces_of(self.catalog_record.provider if kind.home is ZoneKind.CATALOG else "")[kind]

    def require_in_use(self) -> None:
        """Refuse what lies below a disabled metalake or catalog."""
        if self.settled.in_use:
            return
        self.require_in_metalake_use()
        if self.settled.catalog is not None and not self.catalog_record.in_use:
            self.require(Action.CATALOG_LOAD, self.settled.outer)
            raise NotInUse(f"Catalog {self.catalog.name} is disabled: enable it first", kind="catalog")

    def require_in_metalake_use(self) -> None:
        """Refuse what lies below a disabled metalake; the catalog's own state does not matter."""
        if not cast("MetalakeRecord", self.metalake.record).in_use:
            self.require(
                Action.METALAKE_LOAD, self.settled.outer[-1:]
            )  # who may not know the metalake learns nothing of it
            raise NotInUse(f"Metalake {self.metalake.name} is disabled: enable it first", kind="metalake")

    def find(self, levels: Levels, kind: Kind) -> tuple[Node | None, SecurableChain]:
        """Resolve an object of the catalog.

        Returns its node and the chain of links from it up to the metalake; or None and the chain from the namespace it
        would lie in, whose missing namespaces are absent links.
        """
        if self._missing is not None:
            return None, (
                *(ChainLink.absent(Kind.NAMESPACE, name) for name in reversed(levels[:-1])),
                *self.settled.outer,
            )
        paths = self.view.paths(self.zone)
        key = (levels, kind)
        found: tuple[int, SecurableChain, SecurableChain] | None = paths.get(key)
        if found is not None and found[2] is self.settled.outer:
            node = self.view.get(node_key(found[0]))
            if node is not ABSENT:
                return cast("Node", node), found[1]
        node_id, chain = self._walk(levels, kind)
        if node_id is None:
            return None, chain
        paths[key] = (node_id, chain, self.settled.outer)
        return self.node(node_id), chain

    def _walk(self, levels: Levels, kind: Kind) -> tuple[int | None, SecurableChain]:
        parent, last = self.catalog.id, len(levels) - 1
        namespace, own = self.space(_NAMESPACE), self.space(kind)
        links: list[ChainLink] = []
        for i, name in enumerate(levels):
            space = namespace if i < last else own
            node_id = self.view.get(name_key(parent, space, name))
            if node_id is ABSENT:
                steps = [*((namespace, level) for level in levels[i:last]), (own, levels[last])]
                raise CacheMiss({path_key(parent, tuple(steps)): self.zone})
            if node_id is None or ((i < last or kind is _NAMESPACE) and self._is_leaf(node_id, space)):
                links += [ChainLink.absent(Kind.NAMESPACE, missing) for missing in levels[i:last]]
                return None, (*reversed(links), *self.settled.outer)
            parent = node_id
            links.append(ChainLink(parent, kind if i == last else _NAMESPACE, name))
        return parent, (*reversed(links), *self.settled.outer)

    def _is_leaf(self, node_id: int, space: str) -> bool:
        """Say whether what has a name is no namespace: only where namespaces and tables share their names can that be."""
        if space != SHARED_SPACE:
            return False
        return self.node(node_id).kind is not _NAMESPACE

    def look_up(
        self, kind: Kind, name: Levels, action: Action, *, probe: Action | None = None
    ) -> AuthorizedObject[Node]:
        """Find a node by its name, for who may do the action to it; works for every kind that is a node.

        `name`: empty for the scope's own metalake or catalog, one part for what lies in the metalake beside the tree,
        the levels below the catalog for the rest. What is missing is NotFound to whoever could do the action if it were
        there without grants of its own, or may do `probe` beside it; Forbidden, in the same words as if it were there,
        to everyone else.
        """
        node, chain = self.find(name, kind) if kind.home is _IN_CATALOG else self.find_outside(kind, name)
        if node is not None and node.kind is kind:
            return AuthorizedObject(node, chain, self.require(action, chain))
        above = chain if node is None else chain[1:]  # a view where a table was meant
        absent = (ChainLink.absent(kind, name[-1]), *above)
        decision = self.decide(action, absent)
        if decision.allowed or (probe is not None and self.decide(probe, absent).allowed) or self._is_no_secret(absent):
            raise self.missing(kind, name)
        raise self.refusal(decision)

    def _is_no_secret(self, absent: SecurableChain) -> bool:
        """Say whether the caller may know that a namespace is missing: who may list namespaces learns which exist."""
        namespace = absent[0] if absent[0].kind is Kind.NAMESPACE else absent[1]
        if namespace.kind is not Kind.NAMESPACE or namespace.id > 0:
            return False
        return self.decide(Action.NAMESPACE_LIST, self.settled.outer).allowed

    def judge(self, entity: E | None, kind: Kind, name: str, action: Action) -> AuthorizedObject[E]:
        """Decide, as `look_up` does, on what is no node: a user, a group or a role of the metalake."""
        link = ChainLink.absent(kind, name) if entity is None else ChainLink(entity.id, kind, name)
        chain = (link, *self.settled.outer[-1:])
        decision = self.require(action, chain)
        if entity is None:
            raise self.missing(kind, (name,))
        return AuthorizedObject(entity, chain, decision)

    def missing(self, kind: Kind, name: Levels) -> NotFound:
        """Say that an object does not exist."""
        if kind.home is ZoneKind.CATALOG:
            return NotFound(f"{kind.word.capitalize()} does not exist: {render(name)}", kind=kind.word)
        told = f"{kind.word.capitalize().replace('_', ' ')} {name[0]} does not exist in metalake {self.metalake.name}"
        how = "add it first" if kind.form is KindGroup.PRINCIPAL else "create it first"
        return NotFound(f"{told}: {how}", kind=kind.word)

    def find_outside(self, kind: Kind, name: Levels) -> tuple[Node | None, SecurableChain]:
        """Resolve the scope's own metalake or catalog, or what lies in the metalake beside the tree, such as a tag."""
        if kind is Kind.CATALOG and self.settled.catalog is not None:
            return self.settled.catalog, self.settled.outer
        outer = self.settled.outer[-1:]
        if kind is Kind.METALAKE:
            return self.metalake, outer
        node = _find_child(self.view, self.metalake.id, kind.word, name[0], zone=self.metalake.id)
        return (None, outer) if node is None else (node, (ChainLink(node.id, kind, name[0]), *outer))

    def is_taken(self, parent_id: int, kind: Kind, name: str) -> bool:
        """Say whether a name is known to be taken; one that is not cached counts as free, for the mutation looks itself."""
        return isinstance(self.view.get(name_key(parent_id, self.space(kind), name)), int)

    def holder_of(self, parent_id: int, kind: Kind, name: str) -> Kind | None:
        """Return what has a name, as far as it is known; None counts as free, for the mutation looks itself."""
        node_id = self.view.get(name_key(parent_id, self.space(kind), name))
        if not isinstance(node_id, int):
            return None
        node = self.view.get(node_key(node_id))
        return node.kind if isinstance(node, Node) else None

    def node(self, node_id: int) -> Node:
        """Return a node of the scope's zone by id."""
        key = node_key(node_id)
        found = self.view.get(key)
        if found is ABSENT:
            raise CacheMiss({key: self.zone})
        return cast("Node", found)

    def document(self, node_id: int) -> MetadataDocument:
        """Return a table's document."""
        key = document_key(node_id)
        found = self.view.get(key)
        if found is ABSENT:
            raise CacheMiss({key: self.zone})
        return cast("MetadataDocument", found)

    def zone_of(self, kind: Kind) -> int:
        """Return the zone on whose clock the objects of a kind are, in this scope."""
        return self.settled.zones[_ZONE_PLACES[kind]]

    # -- may -------------------------------------------------------------------------------------------------

    def owner_of(self, link: ChainLink) -> int | None:
        """Return the id of the principal that owns a link's object."""
        found = self.view.get(owner_key(link.id))
        if found is ABSENT:
            raise CacheMiss({owner_key(link.id): self.zone_of(link.kind)})
        return found

    def decide(self, action: Action, chain: SecurableChain) -> Decision:
        """Decide for the caller, remembered until access moves; an object that is not there is decided afresh.

        So is everything where only some roles count: what is remembered is about whole users.
        """
        if not chain or chain[0].id <= 0 or self.active is not None:
            return self.decide_for(self.user, action, chain)
        memo = self.view.memo(self.settled.zones[-1])
        key = (self.user, action, chain[0].id)
        found: Decision | None = memo.get(key)
        if found is None:
            found = memo[key] = self.decide_for(self.user, action, chain)
        return found

    def decide_for(self, user: str, action: Action, chain: SecurableChain) -> Decision:
        """Decide for any user, and remember nothing; for the caller with the roles that count in this request."""
        subject = self.subject if user == self.user else self.subject_of(user)
        if not self.rules.access_enabled:
            return allow_unchecked(subject, action, chain, revision=self.stamps)
        try:
            found = decide(subject, action, chain, self.owner_of, revision=self.stamps)
        except CacheMiss:
            self._want_owners(chain)
            raise
        binding = self.bindings_of(user, chain) if found.allowed and action in RESTRICTED_ACTIONS else ()
        return refuse_restricted(found, binding, chain=chain) if binding else found

    def bindings_of(self, user: str, chain: SecurableChain) -> tuple[BindingRestriction, ...]:
        """Return the read restrictions that bind a user on what the chain begins with; none with access control off."""
        if not self.rules.access_enabled or self.settled.catalog is None:
            return ()
        held = require_fact(self.view, restrictions_key(self.zone), zone=self.zone).by_object
        if not held:
            return ()
        subject, active = (self.subject, self.active) if user == self.user else (self.subject_of(user), None)
        try:
            return binding_restrictions(subject, chain, by_object=held, owner_of=self.owner_of, active=active)
        except CacheMiss:
            self._want_owners(chain)
            raise

    def _want_owners(self, chain: SecurableChain) -> None:
        """Ask for all missing owners of a chain at once."""
        wanted = {
            owner_key(link.id): self.zone_of(link.kind)
            for link in chain
            if link.id > 0 and self.view.get(owner_key(link.id)) is ABSENT
        }
        if wanted:
            raise CacheMiss(wanted)

    def require(self, action: Action, chain: SecurableChain) -> Decision:
        """Decide for the caller. Raises Forbidden with the decision; NotFound where it is about a missing catalog."""
        decision = self.decide(action, chain)
        if not decision.allowed:
            raise self.refusal(decision)
        if self.asker is not None and self.asker.decided is not None:
            self._tell(decision)
        if self._missing is not None and self.settled.outer[0] in chain:
            raise self._missing
        return decision

    def _tell(self, decision: Decision) -> None:
        """Let the audit know what was decided for the request."""
        asker = self.asker
        if asker is not None and asker.decided is not None:
            asker.decided.append(decision)
            if self.settled.metalake is not None:
                asker.user_id = self.subject.user_id

    def refusal(self, decision: Decision) -> PermissionDenied:
        """Say no, with the decision's own words."""
        self._tell(decision)
        return PermissionDenied(decision.message(), decision=decision)

    @property
    def stamps(self) -> tuple[tuple[int, int], ...]:
        """The access revisions of the scope's zones."""
        return self.view.access_stamps(self.settled.zones)

    def permit(self, command: C, *decisions: Decision, zone: int | None = None) -> Permit[C]:
        """Turn allowed decisions into the proof that a mutation takes. `zone` is the one that it writes to."""
        if not decisions:
            raise PermissionDenied("No permit without an allowed decision")
        for decision in decisions:
            if not decision.allowed:
                raise PermissionDenied("No permit without an allowed decision")
        actor_id = None if self.settled.metalake is None else self.subject.user_id
        return Permit(
            command,
            decisions,
            self.zone if zone is None else zone,
            self.view.access_stamps(self.settled.zones),
            self.user,
            actor_id,
            self.request_id,
        )
