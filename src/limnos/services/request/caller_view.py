# SPDX-License-Identifier: Apache-2.0
"""The caller of a request: groups and roles in the metalake of a scope, and the refusal of disabled users.

Synchronous.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.access.restrictions import deny_inherited
from limnos.access.subjects import principal_of, require_member, subject_of
from limnos.model.decisions import ChainLink, SecurableChain, disabled_text
from limnos.model.entities import Principal, Token
from limnos.model.errors import AuthenticationFailed, PermissionDenied
from limnos.model.kinds import Kind, ZoneKind
from limnos.model.principals import Subject
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.request_scope import ResolvedScope
from limnos.view.cache_miss import CacheMiss, require_fact
from limnos.view.keys import ABSENT, Key, owner_key, principal_id_key, restrictions_key
from limnos.view.view import DerivedValues, StoreView

_ZONE_PLACES = {kind: {ZoneKind.SERVER: 0, ZoneKind.METALAKE: 1, ZoneKind.CATALOG: 2}[kind.home] for kind in Kind}
"""The index in a scope's zones of the zone to which a kind belongs."""


class CallerView:
    """The part of a request view that depends only on the caller. `RequestView` sets its attributes."""

    __slots__ = (
        "_memo",
        "_subject",
        "_subjects",
        "_token_root",
        "active",
        "operation_token",
        "rules",
        "second_user_id",
        "settled",
        "user",
        "view",
    )
    _memo: DerivedValues | None
    _subjects: DerivedValues
    """The cache of values derived from the access facts of the metalake; unset without a metalake."""
    _subject: Subject | None
    _token_root: int
    active: frozenset[str] | None
    operation_token: Token | None
    rules: AccessSettings
    second_user_id: int
    """The user who needs each right, too, by the request's token; 0 for none."""
    settled: ResolvedScope
    user: str
    view: StoreView

    @property
    def commit_action(self) -> Action:
        """Return the action that a commit to a table requires.

        With the token of a maintenance operation it is a rewrite, whose content the server checks.
        """
        return Action.TABLE_COMMIT if self.operation_token is None else Action.TABLE_REWRITE

    @property
    def subject(self) -> Subject:
        """The caller's groups and roles in this metalake. If the request names active roles, only these allow; all
        roles of the caller still deny.

        Raises PermissionDenied for an active role that the caller does not have.
        """
        if self._subject is None:
            subject = self.subject_of(self.user)
            if self.active is not None and subject.member and self.rules.access_enabled:
                subject = self._narrow_subject(subject, self.active)
            self._subject = subject
        return self._subject

    def _narrow_subject(self, subject: Subject, active: frozenset[str]) -> Subject:
        key = ("narrowed", self.user)  # one entry per user, because each subject may be large
        result: tuple[frozenset[str], Subject] | None = self._subjects.get(key)
        if result is None or result[0] != active:
            result = self._subjects[key] = (active, subject.narrow_to_roles(active))
        return result[1]

    def subject_of(self, user: str) -> Subject:
        """Return a user's groups and roles in this metalake. Cached until the access revision changes."""
        if self.settled.metalake is None:
            return Subject.of(None, user, service_admin=user in self.rules.service_admins, member=False)
        subject: Subject | None = self._subjects.get(user)
        if subject is None:
            admin = user in self.rules.service_admins
            subject = self._subjects[user] = subject_of(self.view, self.settled.zones[1], user, service_admin=admin)
        if self.settled.catalog is None:
            return subject
        memo = self.memo if self._memo is None else self._memo  # each change of restrictions clears it
        key = ("with denials", user)
        result: tuple[Subject, Subject] | None = memo.get(key)
        if result is None or result[0] is not subject:
            result = memo[key] = (subject, self._with_denials(subject))
        return result[1]

    def _with_denials(self, subject: Subject) -> Subject:
        """Add the denials that objects of the catalog took over from former objects of their paths."""
        zone = self.settled.zones[-1]
        denying = require_fact(self.view, restrictions_key(zone), zone=zone).denying
        return deny_inherited(subject, denying) if denying else subject

    @property
    def second_user(self) -> str | None:
        """The name of the user who needs each right, too; None if that user was removed or is disabled."""
        if self.settled.metalake is None:
            return None
        key = principal_id_key(self.second_user_id)
        second = require_fact(self.view, key, zone=self.settled.metalake.id)
        return second.name if second is not None and second.kind is Kind.USER and second.enabled else None

    @property
    def stamps(self) -> tuple[tuple[int, int], ...]:
        """The access revisions of the scope's zones."""
        return self.view.access_stamps(self.settled.zones)

    @property
    def memo(self) -> DerivedValues:
        """The cache of values derived from the access facts of this scope's zones."""
        if self._memo is None:
            self._memo = self.view.memo(self.settled.zones[-1])
        return self._memo

    def _refuse_unfit(self, *, refuse_disabled: bool) -> None:
        """Refuse a disabled user, and a token of an earlier user of the same name, even with access control off.

        Raises AuthenticationFailed for such a token, PermissionDenied for a disabled user.
        """
        if self.settled.metalake is None:
            return
        self._subjects = memo = self.view.memo(self.settled.zones[1])
        key = ("user-status", self.user)
        user_status: tuple[bool, int] | None = memo.get(key)
        if user_status is None:
            metalake_id = self.settled.zones[1]
            if self.rules.access_enabled:
                principal = self._require_member(metalake_id)
            else:
                principal = principal_of(self.view, metalake_id, Kind.USER, self.user)
            user_status = (True, 0) if principal is None else (principal.enabled, principal.tokens_from)
            memo[key] = user_status
        enabled, tokens_from = user_status
        if self._token_root < tokens_from:
            raise AuthenticationFailed(
                f"The token belongs to an earlier user {self.user} of metalake {self.settled.metalake.name}, who was"
                " removed: ask a service admin for a new one",
                was_right=True,
            )
        if refuse_disabled and not enabled:
            raise PermissionDenied(
                disabled_text(self.user, self.settled.metalake.name), metalake_id=self.settled.metalake.id
            )

    def _require_member(self, metalake_id: int) -> Principal | None:
        """Return the caller as a user of the metalake, or None.

        Raises CacheMiss if the fact is not cached. In a catalog, one load then reads also what nearly every decision
        needs: the owners of the catalog and the metalake, and the read restrictions.
        """
        try:
            return require_member(self.view, metalake_id, user=self.user)
        except CacheMiss as cold:
            if self.settled.catalog is not None:
                zone = self.settled.zones[-1]
                keys: dict[Key, int] = {owner_key(metalake_id): metalake_id, owner_key(zone): zone}
                keys[restrictions_key(zone)] = zone
                cold.missing_keys.update({key: zone for key, zone in keys.items() if self.view.get(key) is ABSENT})
            raise

    def zone_of(self, kind: Kind) -> int:
        """Return the zone in this scope to which objects of a kind belong."""
        return self.settled.zones[_ZONE_PLACES[kind]]

    def owner_of(self, link: ChainLink) -> int | None:
        """Return the id of the principal that owns the link's object; None if it has no owner."""
        result = self.view.get(owner_key(link.id))
        if result is ABSENT:
            raise CacheMiss({owner_key(link.id): self.zone_of(link.kind)})
        return result

    def want_owners(self, chain: SecurableChain) -> None:
        """Raise one CacheMiss for all missing owners of the objects of `chain`."""
        requested = {
            owner_key(link.id): self.zone_of(link.kind)
            for link in chain
            if link.id > 0 and self.view.get(owner_key(link.id)) is ABSENT
        }
        if requested:
            raise CacheMiss(requested)
