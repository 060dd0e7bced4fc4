# SPDX-License-Identifier: Apache-2.0
"""Reasons for differences from the reference server, each with the place in the protocol's document (its `spec.yaml`,
and the pages beside it).

May import the standard library only.
"""

from __future__ import annotations

from typing import Final

REASONS: Final[dict[str, str]] = {
    "all tables": (
        "spec.yaml, ListAllTables: the tables of all namespaces, with full identifiers. The reference lists"
        " only those in the root."
    ),
    "both columns": (
        "spec.yaml, QueryTableRequest.columns: either `column_names` or `column_aliases`. The reference "
        "uses the names and ignores the aliases."
    ),
    "branches": (
        "spec.yaml, `branch` of InsertIntoTable, CountTableRows and ListTableVersions, `from_branch` and "
        "`from_version` of CreateTableBranch: the operation applies to this branch, and errors 22 "
        "(TableBranchNotFound) and 11 (TableVersionNotFound) report that it does not exist. The reference "
        "writes to the main branch and counts its rows."
    ),
    "columns": "errors, code 12 TableColumnNotFound: the error for a missing column. The reference answers 13 or 18.",
    "cut bodies": (
        "errors, code 13 InvalidInput: a body that is not an Arrow stream, or is truncated, is an error of "
        "the caller. The reference answers 18, which clients retry."
    ),
    "delimiters": (
        "spec.yaml, parameter `delimiter`: default `$`. An empty one counts as not given; with the "
        "reference no object can be named with it."
    ),
    "dots": (
        "RFC 3986, 5.2.4: clients' libraries remove a segment `..` from a path, so an object of this name "
        "could not be addressed."
    ),
    "e_tags": (
        "spec.yaml, TableVersion: `version` and `manifest_path` are required, `e_tag` is not. The versions "
        "of the main branch differ because the reference wrote the rows of other branches to it."
    ),
    "empty changes": (
        "spec.yaml, AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns: the list has the "
        "changes. The reference commits a version without changes."
    ),
    "empty columns": (
        "spec.yaml, NewColumnTransform: an `expression` (or what LanceDB Enterprise computes). A column "
        "without one is an error of the caller, code 13, not 18."
    ),
    "empty locations": (
        "spec.yaml, RegisterTableRequest.location is required. The reference binds the name to the "
        "directory of all tables."
    ),
    "empty names": (
        "pages on identifiers: an identifier is a list of names; an empty text is not a name. The reference"
        " drops it, and creates another object than requested."
    ),
    "error bodies": (
        "spec.yaml, ErrorResponse: every answer that is not 2xx has a JSON body with `code`; clients treat "
        "one without it as code 18."
    ),
    "full describes": (
        "spec.yaml, DescribeTableRequest.load_detailed_metadata: if it is not given, the implementation "
        "chooses; LanceDB's remote client needs version and schema. `stats` is a field of "
        "DescribeTableResponse that the reference omits."
    ),
    "idle merges": (
        "spec.yaml, MergeInsertIntoTable: a merge that neither updates, inserts nor deletes is an error. "
        "The reference commits a version for it."
    ),
    "limits": (
        "spec.yaml, `limit` and `k`: a number of rows or names, at least 0. The reference treats a negative"
        " one as no limit."
    ),
    "missing lists": (
        "spec.yaml, ListNamespaces and ListTables: 404 with code 1 for a missing namespace. The reference "
        "answers an empty list."
    ),
    "missing parents": (
        "spec.yaml, CreateTable, DeclareTable and DescribeTable: 404 with code 1 for a missing namespace. "
        "The reference creates a table in it."
    ),
    "modes": (
        "spec.yaml, CreateNamespaceRequest.mode, DropNamespaceRequest.mode and .behavior: Create, ExistOk, "
        "Overwrite; Fail, Skip; Restrict, Cascade. The reference ignores them."
    ),
    "null": (
        "a body of `null` is equivalent to an empty body, which both accept; every field of "
        "CreateNamespaceRequest is optional."
    ),
    "offsets": (
        "spec.yaml, QueryTableRequest: `k` is the number of returned rows, `offset` the number of rows that"
        " are skipped before them. The reference includes skipped rows in `k`."
    ),
    "page tokens": "spec.yaml, PageToken: opaque. Tokens of this server are not names; an invented one is refused.",
    "plus": (
        "RFC 3986: a plus in a path is literal, but the native client sends it for a space. The identifier "
        "in the body decides."
    ),
    "predicates": (
        "errors, code 13 InvalidInput: an expression that cannot be parsed is an error of the caller. The "
        "reference answers 18, which clients retry."
    ),
    "ranges": "spec.yaml, VersionRange: from `start_version` up to `end_version`. A reversed range is an error.",
    "root": (
        "RFC 3986, 5.2.4: with the delimiter `.` clients' libraries change the root's path to "
        "`/v1/namespace/list`, so this path is served as well."
    ),
    "root names": "the first names are catalogs here, and there is a second one for Iceberg.",
    "schema only": "spec.yaml, CreateTable: a stream with a schema and no rows creates an empty table.",
    "schemas": (
        "errors, code 20 TableSchemaValidationError: columns that differ from the table's. The reference "
        "answers 18, or closes the connection."
    ),
    "several vectors": (
        "spec.yaml, QueryTableRequestVector.multi_vector: each vector is searched. The reference searches "
        "the first one."
    ),
    "slashes": "a base URL with a trailing slash gives paths with two slashes; clients send such paths.",
    "stats": (
        "spec.yaml, GetTableStatsResponse.num_rows: rows of the table, without deleted rows. The reference "
        "counts these."
    ),
    "tags in describes": (
        "spec.yaml, DescribeTableRequest.tag and .branch: 404 with code 8 or 22 if they do not exist. The "
        "reference describes the newest version instead."
    ),
    "taken columns": (
        "errors, code 14 ConcurrentModification: a conflict with another writer. Here no other writer is "
        "involved: the name is taken, code 13."
    ),
    "times": (
        "spec.yaml, MergeInsertIntoTable, `timeout`: a duration such as `30s`. The reference treats an "
        "invalid one as no limit."
    ),
    "unserved": (
        "errors, code 0 Unsupported with status 406; clients treat 18 as a fault and retry it. Renames, "
        "batches and metadata of fields are served here."
    ),
    "version creates": (
        "spec.yaml, CreateTableVersion: for tables whose versions the server manages. Of other tables the "
        "files determine the next version: the error is code 13, because clients would retry 14."
    ),
    "versions in exists": (
        "spec.yaml, TableExistsRequest.version: 404 with code 11 if the version does not exist. The "
        "reference ignores the field."
    ),
    "bad versions": (
        "errors, code 11 TableVersionNotFound, status 404. The reference answers 18, or describes the newest version."
    ),
    "index pages": (
        "spec.yaml, ListTableIndicesRequest.limit: the maximum number of indexes per page, with a token for"
        " the next page. The reference lists all."
    ),
}
ADDED: Final[dict[str, str]] = {
    "transaction_id": "optional in the answer of every write; it can be given to DescribeTransaction",
    "managed_versioning": (
        "DescribeTableResponse, DeclareTableResponse: states what manages a table's versions, also if it is the storage"
    ),
    "properties": "DeregisterTableResponse, DropTableResponse: the properties of the removed table",
    "page_token": "ListTableVersionsResponse: there are more versions than `limit`",
    "rows_updated": "LanceDB's remote client reads it in place of `updated_rows`",
    "num_deleted_rows": "LanceDB's remote client reads it after a delete",
    "version": "the version that was created or is described; LanceDB's remote client needs it in a description",
}
