# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses: frozen structs that decode the server's JSON.

Must not know HTTP. Unknown fields of a newer server are ignored; optional fields have defaults.
"""

from limnos.client.values.activity import (
    AuditLine,
    AuditObject,
    AuditPage,
    ChangeInfo,
    ChangesPage,
    ImportInfo,
    LineageAssertion,
    LineageEdge,
    LineageGraph,
    LineageJob,
    LineageNode,
    LineageReceipt,
    MetalakeImportResult,
    NewWebhook,
    ReportInfo,
    SkippedDatasetInfo,
    WebhookInfo,
)
from limnos.client.values.catalog import (
    Catalog,
    FilePreview,
    FilesetEntry,
    FilesetPage,
    IcebergTableInfo,
    IcebergViewInfo,
    LanceTable,
    Metalake,
    MoveResult,
    NameChange,
    NameChanges,
    NameCheck,
    Namespace,
    OperationResult,
    PreviewColumn,
    SourceTable,
    TableCheckResult,
    TableFinding,
    TablePreview,
    TransactionReceipt,
    TrashItem,
    UndropResult,
    Version,
)
from limnos.client.values.governance import MetadataObject, NamedPrincipals, Protector, ReadRestriction, Tag
from limnos.client.values.identity import (
    ConsoleCode,
    Decision,
    Explanation,
    Factor,
    Group,
    IssuerClient,
    LoginResult,
    NewSecret,
    NewToken,
    Owner,
    Privilege,
    Role,
    SecretInfo,
    SecurableObject,
    ServiceAccountInfo,
    TokenInfo,
    User,
)
from limnos.client.values.operation import (
    NodeInfo,
    NodesInfo,
    SearchBehindInfo,
    SecretKey,
    SecretKeys,
    SettingInfo,
    StatementMessage,
    StatementResponse,
    StorageCheckResult,
    StorageStep,
    TaskInfo,
)
from limnos.client.values.shared import AuditInfo, Json, ObjectName, Parts
