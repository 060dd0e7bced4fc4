"""Frozen values of what the store holds, as the rooms above it see them.

May import only `model` itself. Knows no SQL and no wire format. Times are milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.model.kinds import ROOT_ID
from limnos.model.principals import Requester, TokenPurpose

if TYPE_CHECKING:
    from limnos.model.kinds import Kind
    from limnos.model.principals import TokenTrust
    from limnos.model.records import NodeRecord


class Node(msgspec.Struct, frozen=True):
    """One named object of the tree. `zone` is the clock its changes run on, `parent_id` 0 is the root."""

    id: int
    zone: int
    parent_id: int
    kind: Kind
    name_space: str
    name: str
    format: str
    implicit: bool
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None
    revision: int
    record: NodeRecord


class Principal(msgspec.Struct, frozen=True):
    """A user or group of a metalake.

    Tokens whose root is before `tokens_from` speak for an earlier user of the name, who was removed.
    """

    id: int
    metalake_id: int
    kind: Kind
    name: str
    external_id: str | None
    enabled: bool
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None
    tokens_from: int = 0


class RoleEntity(msgspec.Struct, frozen=True):
    """A role of a metalake, without its rules."""

    id: int
    metalake_id: int
    name: str
    properties: tuple[tuple[str, str], ...]
    created_by: str
    created_at: int
    modified_by: str | None
    modified_at: int | None


class Grant(msgspec.Struct, frozen=True):
    """One rule of a role: a privilege (its stored number), allowed or denied, on an object."""

    object_id: int
    object_kind: Kind
    privilege: int
    allowed: bool


class RoleWithRules(msgspec.Struct, frozen=True):
    """A role with its rules.

    `nodes`: parent, kind and name of each live object of the rules, and of everything above it, by id; None when they
    were not read together with the rules. `in_parts`: there are too many rules to be read in one go, and none was.
    """

    role: RoleEntity
    grants: tuple[Grant, ...]
    nodes: dict[int, tuple[int, Kind, str]] | None = None
    in_parts: bool = False


class Token(msgspec.Struct, frozen=True):
    """A token of this server's; only the hash of its secret is known.

    `root_id` is the first of the line of tokens, each made with the one before: it tells for whom the line began.
    """

    id: int
    user: str
    name: str
    secret_hash: bytes
    created_at: int
    expires_at: int | None
    revoked: bool
    trust: TokenTrust
    root_id: int
    purpose: TokenPurpose = TokenPurpose.API

    def is_over(self, now_ms: int) -> bool:
        """Say whether its time is over, by the store's clock in milliseconds since 1970."""
        return self.expires_at is not None and self.expires_at <= now_ms


class Password(msgspec.Struct, frozen=True):
    """A local user's password, hashed; sessions that it opens have its `root_id`."""

    user: str
    hash: str
    trust: TokenTrust
    root_id: int


class TaskRow(msgspec.Struct, frozen=True):
    """A task as it is shown. Times are milliseconds since 1970; one that ended with an error was given up."""

    id: int
    kind: str
    payload: str
    created_at: int
    due_at: int
    attempts: int
    leased_until: int
    progress: str | None
    error: str | None
    ended_at: int | None
    result: str | None


class TrashRow(msgspec.Struct, frozen=True):
    """Something that was dropped and can be brought back until it expires. Its names are those it was dropped under."""

    id: int
    kind: Kind
    name_space: str
    name: str
    parent_id: int
    dropped_by: str
    dropped_by_id: int | None
    dropped_at: int
    expires_at: int


class Webhook(msgspec.Struct, frozen=True):
    """An address that changes of a metalake are sent to, as its maker may see them. Times are milliseconds since 1970.

    `position` is how far it was told; `user_id` is 0 where nobody has to be a user. One that is `stopped` waits for somebody.
    """

    id: int
    metalake_id: int
    user: str
    user_id: int
    url: str
    secret: str
    position: str
    created_at: int
    due_at: int
    leased_until: int
    attempts: int
    stopped: bool
    error: str | None
    delivered_at: int | None


class MetricsReportRow(msgspec.Struct, frozen=True):
    """What a client told of a scan of a table, or of a commit to it: JSON as it was sent. The id is 0 until it is kept."""

    id: int
    node_id: int
    kind: str
    reporter: str
    at: int
    snapshot_id: int | None
    body: bytes


class MetadataDocument(msgspec.Struct, frozen=True):
    """The metadata document of a table: JSON bytes as they are served, and where they also lie as a file."""

    node_id: int
    version: int
    uuid: str
    location: str
    metadata_location: str
    body: bytes


class Listing(msgspec.Struct, frozen=True, weakref=True):
    """Live names of one name space and kind under one parent, sorted by code point; columns run in parallel.

    `encoded` are the names as JSON strings: every protocol's list is joined from them.
    """

    names: tuple[str, ...]
    ids: tuple[int, ...]
    owners: tuple[int | None, ...]
    encoded: tuple[bytes, ...]


class OwnedRange(msgspec.Struct, frozen=True):
    """Where in a catalog a principal owns something: objects in a range of ids, after one (the key's) up to `last`, None for all.

    `parents` hold owned objects that are no namespaces (the catalog itself may be one), `namespaces` are owned themselves.
    """

    parents: frozenset[int]
    namespaces: frozenset[int]
    last: int | None


class ChangeRow(msgspec.Struct, frozen=True):
    """A row of the change feed: which keys a mutation touched, under their old and new names.

    The columns are made for what has a name under a parent. What else they hold is told by the properties: whoever reads a
    change of a membership, a tag, a token, a role or a principal asks those.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: Kind
    node_id: int
    name_space: str
    old_parent: int | None
    old_name: str | None
    new_parent: int | None
    new_name: str | None
    owner_id: int | None

    @property
    def group_id(self) -> int:
        """The group that a user joins or leaves."""
        return self.new_parent or ROOT_ID

    @property
    def object_id(self) -> int:
        """The object that a tag is attached to or detached from, the pipeline of a run, or the one object on which a role's rules changed."""
        return self.new_parent or ROOT_ID

    @property
    def metalake_id(self) -> int:
        """The metalake of a role, a user or a group."""
        return (self.new_parent if self.old_parent is None else self.old_parent) or ROOT_ID

    @property
    def only_name(self) -> str | None:
        """The name of a role, a user or a group, which never changes; None where the change does not tell it."""
        return self.new_name if self.old_name is None else self.old_name

    @property
    def user_name(self) -> str | None:
        """The user whose token it is."""
        return self.old_name


class ClockRow(msgspec.Struct, frozen=True):
    """A zone's clock as one statement saw it."""

    zone: int
    revision: int
    access_revision: int
    pruned_to: int


RUNNING = "running"
IMMEDIATE = "immediate"


class StatementRequest(msgspec.Struct, frozen=True):
    """A request of the query service: `mode` is how its results are had, `state` how it went, `outcome` what its protocol tells in the end."""

    handle: str
    user_name: str
    user_id: int
    request_id: str
    client_context_id: str
    statement: str
    mode: str
    started_at: int
    holder: str
    alive_until: int
    state: str = RUNNING
    expires_at: int = 0
    rows_count: int = 0
    size: int = 0
    outcome: bytes = b""

    @property
    def asker(self) -> Requester:
        """Whose it is."""
        return Requester(self.user_name, self.user_id)

    def is_lost(self, now_ms: int) -> bool:
        """Whether the node that runs it is gone."""
        return self.state == RUNNING and self.alive_until <= now_ms
