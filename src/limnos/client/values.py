"""What the client's calls answer: frozen structs that read the servers' JSON directly.

May import msgspec. Knows no HTTP. Fields that a server adds later are ignored; fields it may leave out have defaults.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Parts = tuple[str, ...]
"""A path inside a metalake: catalog, namespaces, and for a table or view its name."""

Json = dict[str, object]
"""A JSON document that is handed on as it is."""


class Audit(msgspec.Struct, frozen=True, rename="camel"):
    """Who made and changed an object; times are ISO-8601 texts, UTC."""

    creator: str | None = None
    create_time: str | None = None
    last_modifier: str | None = None
    last_modified_time: str | None = None


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """The version a server speaks for."""

    version: str
    compile_date: str | None = None
    git_commit: str | None = None


class Metalake(msgspec.Struct, frozen=True):
    """The top of one tree."""

    name: str
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: Audit = Audit()


class Catalog(msgspec.Struct, frozen=True):
    """A catalog: a subtree of one provider."""

    name: str
    type: str
    provider: str | None = None
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: Audit = Audit()


class Namespace(msgspec.Struct, frozen=True):
    """A namespace with its properties; `path` starts with the catalog."""

    path: Parts
    properties: dict[str, str] = {}


class TrashItem(msgspec.Struct, frozen=True):
    """Something that was dropped and can be brought back; times are ISO-8601 texts, UTC."""

    id: int
    kind: str
    path: Parts
    dropped_by: str
    dropped_at: str
    expires_at: str


class ReportInfo(msgspec.Struct, frozen=True):
    """What a client told of a scan or a commit: `type` is `scan` or `commit`, `report` is as it was sent."""

    id: int
    type: str
    at: str
    user: str
    snapshot_id: int | None = None
    report: Json = {}


class AuditObject(msgspec.Struct, frozen=True):
    """What a line of the audit is about; `path` is where it was then, below the metalake."""

    id: int
    kind: str
    path: str


class AuditLine(msgspec.Struct, frozen=True):
    """Who did what: `change` is unset for what changed nothing; each of `rights` is worded as an explanation is."""

    id: int
    at: str
    outcome: str
    user: str | None = None
    change: str | None = None
    action: str | None = None
    object: AuditObject | None = None
    new_path: str | None = None
    detail: str | None = None
    rights: tuple[Json, ...] = ()
    protocol: str | None = None
    operation: str | None = None
    status: int | None = None
    request_id: str | None = None
    client: str | None = None
    peer: str | None = None
    credential: str | None = None
    zone: int | None = None
    revision: int | None = None
    ordinal: int | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Lines of the audit; `next` is the line to go on before, or after, and `more` says whether there are more now."""

    lines: tuple[AuditLine, ...]
    next: int | None
    more: bool


class UndropResult(msgspec.Struct, frozen=True):
    """What was brought back and where it is now, how much of its contents came along and how much stays in the trash."""

    kind: str
    path: Parts
    contents: int = 0
    left: int = 0


class NameCheck(msgspec.Struct, frozen=True):
    """Whether a catalog's namespaces nest, how many of their names hold the separator, the first of them.

    `free`: separators that none of them holds, when some hold this one.
    """

    nested: bool
    separator: str
    conflicts: int
    names: tuple[str, ...]
    free: tuple[str, ...]


class NameChanges(msgspec.Struct, frozen=True):
    """How far a change of names is: of `total` so many have another name, lie on their path, were left as others had changed them."""

    state: str
    separator: str
    replacement: str
    nests: bool
    planned_by: str
    planned_at: str
    total: int
    renamed: int
    nested: int
    left: int
    done: bool = False


class NameChange(msgspec.Struct, frozen=True):
    """What becomes of one namespace: another name, then, with a `path`, its place; `step` is how far that is."""

    name: str
    new_name: str
    path: Parts | None
    step: str


class IcebergTableInfo(msgspec.Struct, frozen=True):
    """An Iceberg table: where its metadata lies and what it says; `path` starts with the catalog."""

    path: Parts
    metadata_location: str | None
    metadata: Json
    config: dict[str, str] = {}


class SourceTable(msgspec.Struct, frozen=True):
    """A table of another system, as Gravitino REST tells it. `path` starts with the catalog."""

    path: Parts
    table: Json


class LanceTable(msgspec.Struct, frozen=True):
    """A Lance table: where it lies and what its files say; without data it has no version. `path` starts with the catalog.

    `storage_options` are what Lance needs to reach it there. Of a `managed` one the server says what its versions are.
    """

    path: Parts
    location: str
    properties: dict[str, str]
    version: int | None
    table_schema: Json
    stats: dict[str, int]
    storage_options: dict[str, str] = {}
    managed: bool = False


class IcebergViewInfo(msgspec.Struct, frozen=True):
    """An Iceberg view: where its metadata lies and what it says; `path` starts with the catalog."""

    path: Parts
    metadata_location: str
    metadata: Json


class User(msgspec.Struct, frozen=True, rename="camel"):
    """A member of a metalake. A disabled one is refused everywhere."""

    name: str
    roles: tuple[str, ...] = ()
    enabled: bool = True
    external_id: str | None = None
    audit: Audit = Audit()


class Group(msgspec.Struct, frozen=True, rename="camel"):
    """A group of a metalake and the roles it has."""

    name: str
    roles: tuple[str, ...] = ()
    external_id: str | None = None
    audit: Audit = Audit()


class Privilege(msgspec.Struct, frozen=True):
    """A privilege of a role on one object, allowed or denied."""

    name: str
    condition: Literal["allow", "deny"] = "allow"


class SecurableObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object in a role, as Gravitino spells it, with the role's privileges there."""

    full_name: str
    type: str
    privileges: tuple[Privilege, ...] = ()


class Role(msgspec.Struct, frozen=True, rename="camel"):
    """A role and everything it grants."""

    name: str
    securable_objects: tuple[SecurableObject, ...] = ()
    properties: dict[str, str] | None = None
    audit: Audit = Audit()


class Tag(msgspec.Struct, frozen=True, rename="camel"):
    """A tag; `inherited` is told where it was asked for on an object."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    inherited: bool | None = None
    allowed_values: tuple[str, ...] | None = None
    """What values it may have where it is attached; None is any, an empty list none."""
    assignment_values: tuple[str, ...] = ()
    """What values it has on the object that was asked for."""
    audit: Audit = Audit()


class MetadataObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the tree, as Gravitino spells it."""

    full_name: str
    type: str


class Protector(msgspec.Struct, frozen=True):
    """What protects an object: itself or, with `below`, something above it; `set_at` is an ISO-8601 text, UTC."""

    by: ObjectName
    below: bool
    set_by: str
    set_at: str


class NamedPrincipals(msgspec.Struct, frozen=True):
    """Users, groups and roles by their names."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class ReadRestriction(msgspec.Struct, frozen=True, rename={"unless": "except"}):
    """A restriction of a table or namespace: the filter as an expression of Iceberg REST, masks by column, whom it binds (nobody named: everybody) and whom not."""

    name: str
    on: ObjectName
    masks: dict[str, str]
    to: NamedPrincipals
    unless: NamedPrincipals
    set_by: str
    set_at: str
    filter: Json | None = None


class Owner(msgspec.Struct, frozen=True):
    """Who owns an object; `type` is `user` or `group`."""

    name: str
    type: str


class MoveResult(msgspec.Struct, frozen=True):
    """Where a namespace, table or view is now; `path` starts with the catalog."""

    kind: str
    path: Parts


class OperationResult(msgspec.Struct, frozen=True):
    """What one operation of a transaction did; `path` starts with the catalog, then come a table's new metadata, and a run's id."""

    do: str
    path: Parts = ()
    uuid: str | None = None
    metadata_location: str | None = None
    run: str | None = None


class TransactionReceipt(msgspec.Struct, frozen=True):
    """What a transaction did, and the revision of the catalog after it."""

    revision: int
    operations: tuple[OperationResult, ...]


class TokenInfo(msgspec.Struct, frozen=True):
    """An API token without its secret. Times are as the server gives them."""

    id: int | str
    user: str
    name: str | None = None
    created_at: int | float | str | None = None
    expires_at: int | float | str | None = None
    revoked: bool = False
    trust: str | None = None


class ImportInfo(msgspec.Struct, frozen=True):
    """An import of a metalake that is under way: how many records of its file it has. Times are as the server gives them."""

    id: int
    name: str
    format: str
    ids: str
    state: str
    records: int
    source: str = ""
    begun_by: str = ""
    begun_at: int | float | str | None = None
    fed_at: int | float | str | None = None


class MetalakeImportResult(msgspec.Struct, frozen=True):
    """A metalake that was imported; `masked` are properties of catalogs that its file left out as secrets."""

    metalake: str
    records: int
    masked: tuple[str, ...] = ()


class StorageStep(msgspec.Struct, frozen=True):
    """One thing that was tried of a catalog's storage: `passed`, `failed` or `not tried`, and what lacks in a policy."""

    name: str
    outcome: str
    told: str
    statement: str | None = None


class StorageCheckResult(msgspec.Struct, frozen=True):
    """Where a catalog's storage was tried, and what came of it."""

    location: str
    steps: tuple[StorageStep, ...]
    passed: bool


class TableFinding(msgspec.Struct, frozen=True):
    """A file that is not as its table says, and what to do (`told`)."""

    kind: str
    """`metadata`, `manifest list`, `manifest`, `file`, `statistics`."""
    problem: str
    """`missing`, `size` (other than told), `unreadable`, `outside` (not looked at)."""
    file: str
    snapshot_id: int | None = None
    size_told: int | None = None
    size_found: int | None = None
    told: str = ""


class TableCheckResult(msgspec.Struct, frozen=True):
    """How many files of a table were looked at, and which are not as it says; `after` is where the next slice begins."""

    files: int
    findings: tuple[TableFinding, ...]
    after: str | None = None


class SecretKey(msgspec.Struct, frozen=True):
    """A key that seals secrets, by its id, and how many catalogs and webhooks have some under it."""

    id: str
    catalogs: int
    webhooks: int = 0
    seals: bool = False


class SecretKeys(msgspec.Struct, frozen=True):
    """The keys that a server has, oldest first; those that it lacks; how many catalogs and webhooks have secrets that are not sealed."""

    keys: tuple[SecretKey, ...]
    lacking: tuple[SecretKey, ...]
    plain: int
    made_here: bool
    sealed: int | None = None
    """How many catalogs and webhooks a rotation has sealed."""


class TaskInfo(msgspec.Struct, frozen=True):
    """Work that the server does beside requests. Times are as the server gives them."""

    id: int | str
    kind: str
    state: str
    attempts: int = 0
    created_at: int | float | str | None = None
    due_at: int | float | str | None = None
    ended_at: int | float | str | None = None
    progress: str | None = None
    error: str | None = None
    result: str | None = None
    payload: object = None


class ChangeInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change that was committed. `path` is where its object is now, or lay when it was dropped.

    `old` and `new` are the places that the change took it from and put it at; what the caller may not see is None.
    """

    zone: int
    revision: int
    ordinal: int
    operation: str
    kind: str
    id: int
    actor: str
    request_id: str
    at: str
    path: Parts | None = None
    old: Parts | None = None
    new: Parts | None = None


class ChangesPage(msgspec.Struct, frozen=True):
    """Changes, the position after them, and whether more is there already."""

    changes: tuple[ChangeInfo, ...]
    next: str
    more: bool = False


class WebhookInfo(msgspec.Struct, frozen=True):
    """An address that changes are sent to, as its maker may see them. `behind` counts revisions that it was not told yet."""

    id: int | str
    url: str
    user: str
    state: str
    behind: int = 0
    created_at: str | None = None
    delivered_at: str | None = None
    attempts: int = 0
    due_at: str | None = None
    error: str | None = None


class NewWebhook(msgspec.Struct, frozen=True):
    """A webhook just made. `secret` signs what is sent; it is never shown again."""

    id: int | str
    url: str
    user: str
    secret: str


class NewToken(msgspec.Struct, frozen=True):
    """An API token just made. `token` is the secret; it is never shown again."""

    id: int | str
    token: str
    user: str
    expires_at: int | float | str | None = None


class LoginResult(msgspec.Struct, frozen=True):
    """What a login gave: a token for a while, and what the next one is asked for with, which only a login by password gives."""

    user: str
    token: str
    expires_in_s: int
    refresh_token: str | None = None
    refresh_expires_in_s: int | None = None


class IssuerClient(msgspec.Struct, frozen=True):
    """An outside issuer at which people sign in in a browser, and the public client by which they do."""

    url: str
    client_id: str
    scope: str


class SecretInfo(msgspec.Struct, frozen=True):
    """A secret of a service account, without its text."""

    id: int | str
    created_at: int | float | str | None = None
    expires_at: int | float | str | None = None
    ended: bool = False


class NewSecret(msgspec.Struct, frozen=True):
    """A secret just made, as a client's `credential` wants it; it is never shown again."""

    id: int | str
    client_id: str
    client_secret: str
    expires_at: int | float | str | None = None


class ObjectName(msgspec.Struct, frozen=True):
    """An object of a decision: its kind, and its path for people."""

    kind: str = ""
    name: str = ""


class Factor(msgspec.Struct, frozen=True):
    """One reason of a decision: what kind it is, which privilege on which object, through which role or group."""

    kind: str = ""
    privilege: str | None = None
    object: ObjectName | str | None = None
    object_kind: str | None = None
    role: str | None = None
    group: str | None = None

    @property
    def object_name(self) -> str:
        """The object for people, or nothing."""
        return _name(self.object)


class Decision(msgspec.Struct, frozen=True):
    """Whether somebody may do something, and why."""

    allowed: bool = False
    action: str = ""
    target: ObjectName | str | None = None
    user: str | None = None
    factors: tuple[Factor, ...] = ()
    message: str | None = None

    @property
    def target_name(self) -> str:
        """The target for people, or nothing."""
        return _name(self.target)

    @property
    def sentence(self) -> str:
        """The decision in words; servers double percent signs for clients that format messages."""
        return (self.message or "").replace("%%", "%")


def _name(named: ObjectName | str | None) -> str:
    return named.name if isinstance(named, ObjectName) else named or ""


class Explanation(msgspec.Struct, frozen=True):
    """A decision, and what would change it."""

    decision: Decision
    suggestions: tuple[str, ...] = ()


class LineageNode(msgspec.Struct, frozen=True):
    """A table or view (with a path), a dataset outside (with namespace and name), or something hidden; `id` holds in its graph."""

    id: str
    kind: str
    path: Parts | None = None
    namespace: str | None = None
    name: str | None = None
    column: str | None = None


class LineageJob(msgspec.Struct, frozen=True):
    """The name of a job, as its producer spells it."""

    namespace: str
    name: str


class LineageAssertion(msgspec.Struct, frozen=True):
    """Which job said an edge, in which run, when, in whose name, and how columns come from there."""

    job: LineageJob
    at: str
    by: str
    run: str | None = None
    kinds: tuple[str, ...] = ()


class LineageEdge(msgspec.Struct, frozen=True):
    """From a source to a target, by their ids in the graph; `depth` is how many steps from the root. Nothing is said of hidden ends."""

    source: str
    target: str
    depth: int
    direct: bool = True
    said: tuple[LineageAssertion, ...] = ()


class LineageGraph(msgspec.Struct, frozen=True):
    """What something came from, or what came from it. `complete` is false where there is more than one graph holds."""

    root: str
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    direction: str = "up"
    depth: int = 1
    complete: bool = True
    after: str | None = None


class SkippedDatasetInfo(msgspec.Struct, frozen=True):
    """A dataset of an event that was left out, and why."""

    namespace: str
    name: str
    reason: str


class LineageReceipt(msgspec.Struct, frozen=True):
    """What became of events: how many edges were kept, and what was left out."""

    kept: int
    left_out: tuple[SkippedDatasetInfo, ...] = ()


class StatementMessage(msgspec.Struct, frozen=True):
    """An error or a warning of the query service: its message begins with the language's code, as `ASX1077`."""

    msg: str


class StatementResponse(msgspec.Struct, frozen=True):
    """What became of statements of SQL++. `results` is None where none of them gives any; each is JSON as it came."""

    status: str
    results: tuple[msgspec.Raw, ...] | None = None
    errors: tuple[StatementMessage, ...] = ()
    warnings: tuple[StatementMessage, ...] = ()
    metrics: Json = {}
