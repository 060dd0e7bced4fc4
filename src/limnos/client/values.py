"""Values of the client's answers: frozen structs that decode the server's JSON.

May import msgspec. Knows no HTTP. Unknown fields of a newer server are ignored; optional fields have defaults.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Parts = tuple[str, ...]
"""A path inside a metalake: catalog, namespaces, and for a table or view its name."""

Json = dict[str, object]
"""A JSON document that is passed on unchanged."""


class Audit(msgspec.Struct, frozen=True, rename="camel"):
    """Creator and last modifier of an object. Times are ISO 8601 texts in UTC."""

    creator: str | None = None
    create_time: str | None = None
    last_modifier: str | None = None
    last_modified_time: str | None = None


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """The Gravitino version that a server implements."""

    version: str
    compile_date: str | None = None
    git_commit: str | None = None


class Metalake(msgspec.Struct, frozen=True):
    """A metalake, the top of a tree."""

    name: str
    comment: str | None = None
    properties: dict[str, str] = {}
    audit: Audit = Audit()


class Catalog(msgspec.Struct, frozen=True):
    """A catalog, with its provider."""

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
    """A dropped object that can be restored. Times are ISO 8601 texts in UTC."""

    id: int
    kind: str
    path: Parts
    dropped_by: str
    dropped_at: str
    expires_at: str


class ReportInfo(msgspec.Struct, frozen=True):
    """A client's metrics report: `type` is `scan` or `commit`, `report` is the JSON that was sent."""

    id: int
    type: str
    at: str
    user: str
    snapshot_id: int | None = None
    report: Json = {}


class AuditObject(msgspec.Struct, frozen=True):
    """The object of an audit line. `path` is its path at that time, below the metalake."""

    id: int
    kind: str
    path: str


class AuditLine(msgspec.Struct, frozen=True):
    """A line of the audit.

    `change` is None for actions that changed nothing. `rights` are worded like an explanation.
    """

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
    """A page of audit lines. `next` is the line to continue before or after; `more` says whether there are more now."""

    lines: tuple[AuditLine, ...]
    next: int | None
    more: bool


class UndropResult(msgspec.Struct, frozen=True):
    """A restored object and its path now; the number of its `contents` restored with it, and `left` in the trash."""

    kind: str
    path: Parts
    contents: int = 0
    left: int = 0


class NameCheck(msgspec.Struct, frozen=True):
    """Whether a catalog's namespaces nest, how many of their names contain the separator, and the first of them.

    `free`: separators that no name contains, if some contain this one.
    """

    nested: bool
    separator: str
    conflicts: int
    names: tuple[str, ...]
    free: tuple[str, ...]


class NameChanges(msgspec.Struct, frozen=True):
    """The state of a migration of names.

    Of `total` names, `renamed` have another name, `nested` are at their path, and `left` were skipped because others
    had changed them.
    """

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
    """The migration of one namespace: its new name and, with a `path`, its new position. `step` is its progress."""

    name: str
    new_name: str
    path: Parts | None
    step: str


class IcebergTableInfo(msgspec.Struct, frozen=True):
    """An Iceberg table: its metadata's location and content. `path` starts with the catalog."""

    path: Parts
    metadata_location: str | None
    metadata: Json
    config: dict[str, str] = {}


class SourceTable(msgspec.Struct, frozen=True):
    """A table of an external system, as Gravitino REST describes it. `path` starts with the catalog."""

    path: Parts
    table: Json


class LanceTable(msgspec.Struct, frozen=True):
    """A Lance table: its location, and its version and schema if it has data. `path` starts with the catalog.

    `storage_options` are what Lance needs to reach the location. If the table is `managed`, the server keeps its
    versions.
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
    """An Iceberg view: its metadata's location and content. `path` starts with the catalog."""

    path: Parts
    metadata_location: str
    metadata: Json


class User(msgspec.Struct, frozen=True, rename="camel"):
    """A member of a metalake. Requests of a disabled user are refused."""

    name: str
    roles: tuple[str, ...] = ()
    enabled: bool = True
    external_id: str | None = None
    audit: Audit = Audit()


class Group(msgspec.Struct, frozen=True, rename="camel"):
    """A group of a metalake, with its roles."""

    name: str
    roles: tuple[str, ...] = ()
    external_id: str | None = None
    audit: Audit = Audit()


class Privilege(msgspec.Struct, frozen=True):
    """A privilege of a role on one object, allowed or denied."""

    name: str
    condition: Literal["allow", "deny"] = "allow"


class SecurableObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object in a role, in Gravitino's spelling, with the role's privileges on it."""

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
    """A tag. `inherited` is set if the tag was requested for an object."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    inherited: bool | None = None
    allowed_values: tuple[str, ...] | None = None
    """Values that the tag may have on objects. None: any; empty: none."""
    assignment_values: tuple[str, ...] = ()
    """Values of the tag on the requested object."""
    audit: Audit = Audit()


class MetadataObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the tree, in Gravitino's spelling."""

    full_name: str
    type: str


class Protector(msgspec.Struct, frozen=True):
    """What protects an object: itself or, with `below`, an ancestor. `set_at` is an ISO 8601 text in UTC."""

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
    """A restriction of a table or namespace: a row filter as an Iceberg REST expression, and masks by column.

    It applies to the principals in `to`, or to all if that is empty, but not to those in `unless`.
    """

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
    """The path of a moved namespace, table or view. It starts with the catalog."""

    kind: str
    path: Parts


class OperationResult(msgspec.Struct, frozen=True):
    """The result of one operation of a transaction: a path with catalog, a table's new metadata, a run's id."""

    do: str
    path: Parts = ()
    uuid: str | None = None
    metadata_location: str | None = None
    run: str | None = None


class TransactionReceipt(msgspec.Struct, frozen=True):
    """The result of a transaction, and the catalog's revision after it."""

    revision: int
    operations: tuple[OperationResult, ...]


class TokenInfo(msgspec.Struct, frozen=True):
    """An API token without its secret. Times are as the server sends them."""

    id: int | str
    user: str
    name: str | None = None
    created_at: int | float | str | None = None
    expires_at: int | float | str | None = None
    revoked: bool = False
    trust: str | None = None


class ImportInfo(msgspec.Struct, frozen=True):
    """An unfinished import of a metalake, with the number of its records. Times are as the server sends them."""

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
    """An imported metalake. `masked` are catalog properties that its file left out as secrets."""

    metalake: str
    records: int
    masked: tuple[str, ...] = ()


class StorageStep(msgspec.Struct, frozen=True):
    """A step of a storage check: `passed`, `failed` or `not tried`, and the policy statement that is missing."""

    name: str
    outcome: str
    told: str
    statement: str | None = None


class StorageCheckResult(msgspec.Struct, frozen=True):
    """The location of a storage check, and its steps."""

    location: str
    steps: tuple[StorageStep, ...]
    passed: bool


class TableFinding(msgspec.Struct, frozen=True):
    """A file that differs from the table's metadata, with advice (`told`)."""

    kind: str
    """`metadata`, `manifest list`, `manifest`, `file`, `statistics`."""
    problem: str
    """`missing`, `size` (differs), `unreadable`, `outside` (not checked)."""
    file: str
    snapshot_id: int | None = None
    size_told: int | None = None
    size_found: int | None = None
    told: str = ""


class TableCheckResult(msgspec.Struct, frozen=True):
    """The number of checked files of a table, and the findings. `after` is the start of the next slice."""

    files: int
    findings: tuple[TableFinding, ...]
    after: str | None = None


class SecretKey(msgspec.Struct, frozen=True):
    """A key that seals secrets, by its id, and the numbers of catalogs and webhooks that use it."""

    id: str
    catalogs: int
    webhooks: int = 0
    seals: bool = False


class SecretKeys(msgspec.Struct, frozen=True):
    """A server's keys, oldest first; missing keys; and the numbers of catalogs and webhooks with unsealed secrets."""

    keys: tuple[SecretKey, ...]
    lacking: tuple[SecretKey, ...]
    plain: int
    made_here: bool
    sealed: int | None = None
    """Number of catalogs and webhooks that a rotation has sealed."""


class TaskInfo(msgspec.Struct, frozen=True):
    """A background task of the server. Times are as the server sends them."""

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
    """A committed change. `path` is the object's current path, or its last one if it was dropped.

    `old` and `new` are the paths before and after a move. What the caller may not see is None.
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
    """A page of changes, the feed position after them, and whether more are available."""

    changes: tuple[ChangeInfo, ...]
    next: str
    more: bool = False


class WebhookInfo(msgspec.Struct, frozen=True):
    """A webhook, as its creator may see it. `behind` is the number of revisions not delivered yet."""

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
    """A new webhook. `secret` signs its deliveries; it is never shown again."""

    id: int | str
    url: str
    user: str
    secret: str


class NewToken(msgspec.Struct, frozen=True):
    """A new API token. `token` is the secret; it is never shown again."""

    id: int | str
    token: str
    user: str
    expires_at: int | float | str | None = None


class LoginResult(msgspec.Struct, frozen=True):
    """The result of a login: a token that expires, and after a login with a password a refresh token."""

    user: str
    token: str
    expires_in_s: int
    refresh_token: str | None = None
    refresh_expires_in_s: int | None = None


class ConsoleCode(msgspec.Struct, frozen=True):
    """A code that opens one session of the console. `public_url` is the server's address for browsers, if it has one."""

    code: str
    expires_in_s: int
    public_url: str | None = None


class IssuerClient(msgspec.Struct, frozen=True):
    """An OpenID Connect issuer for browser logins, and its public client."""

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
    """A new secret, in the form of a client's `credential`; it is never shown again."""

    id: int | str
    client_id: str
    client_secret: str
    expires_at: int | float | str | None = None


class ObjectName(msgspec.Struct, frozen=True):
    """An object of a decision: its kind, and its path for display."""

    kind: str = ""
    name: str = ""


class Factor(msgspec.Struct, frozen=True):
    """A reason of a decision: its kind, the privilege and object, and the role or group that gives it."""

    kind: str = ""
    privilege: str | None = None
    object: ObjectName | str | None = None
    object_kind: str | None = None
    role: str | None = None
    group: str | None = None

    @property
    def object_name(self) -> str:
        """The object for display, or an empty text."""
        return _name(self.object)


class Decision(msgspec.Struct, frozen=True):
    """An access decision with its reasons."""

    allowed: bool = False
    action: str = ""
    target: ObjectName | str | None = None
    user: str | None = None
    factors: tuple[Factor, ...] = ()
    message: str | None = None

    @property
    def target_name(self) -> str:
        """The target for display, or an empty text."""
        return _name(self.target)

    @property
    def sentence(self) -> str:
        """The decision as a sentence. The server doubles percent signs for clients that format messages."""
        return (self.message or "").replace("%%", "%")


def _name(named: ObjectName | str | None) -> str:
    return named.name if isinstance(named, ObjectName) else named or ""


class Explanation(msgspec.Struct, frozen=True):
    """A decision, and suggestions that would change it."""

    decision: Decision
    suggestions: tuple[str, ...] = ()


class LineageNode(msgspec.Struct, frozen=True):
    """A node of a lineage graph: a table or view (with a path), an external dataset, or a hidden node.

    An external dataset has `namespace` and `name`. `id` is valid within its graph.
    """

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
    """A statement of an edge: by which job and run, when, in whose name, and the column lineage."""

    job: LineageJob
    at: str
    by: str
    run: str | None = None
    kinds: tuple[str, ...] = ()


class LineageEdge(msgspec.Struct, frozen=True):
    """An edge from a source to a target, by their ids in the graph. `depth` is its distance from the root.

    `said` is empty if one of the nodes is hidden.
    """

    source: str
    target: str
    depth: int
    direct: bool = True
    said: tuple[LineageAssertion, ...] = ()


class LineageGraph(msgspec.Struct, frozen=True):
    """Origins of an object, or objects made from it. `complete` is false if the graph was cut at its size limit."""

    root: str
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    direction: str = "up"
    depth: int = 1
    complete: bool = True
    after: str | None = None


class SkippedDatasetInfo(msgspec.Struct, frozen=True):
    """A dataset of an event that was skipped, and why."""

    namespace: str
    name: str
    reason: str


class LineageReceipt(msgspec.Struct, frozen=True):
    """The result of sending events: the number of stored edges, and skipped datasets."""

    kept: int
    left_out: tuple[SkippedDatasetInfo, ...] = ()


class StatementMessage(msgspec.Struct, frozen=True):
    """An error or a warning of the query service. Its message begins with the code, such as `ASX1077`."""

    msg: str


class StatementResponse(msgspec.Struct, frozen=True):
    """The response to SQL++ statements. `results` is None if no statement returns any; each result is its JSON text."""

    status: str
    results: tuple[msgspec.Raw, ...] | None = None
    errors: tuple[StatementMessage, ...] = ()
    warnings: tuple[StatementMessage, ...] = ()
    metrics: Json = {}
