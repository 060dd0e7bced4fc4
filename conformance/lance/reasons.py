"""Reasons for differences from the reference server, each with the place in the protocol's document (its `spec.yaml`,
and the pages beside it).

May import the standard library only.
"""

from __future__ import annotations

from typing import Final

REASONS: Final[dict[str, str]] = {
    "all tables": "spec.yaml, ListAllTables: the tables of all namespaces, by their whole identifiers. The reference lists those that lie in the root alone.",
    "both columns": "spec.yaml, QueryTableRequest.columns: either `column_names` or `column_aliases`. The reference takes the names and leaves the aliases out.",
    "branches": "spec.yaml, `branch` of InsertIntoTable, CountTableRows and ListTableVersions, `from_branch` and `from_version` of CreateTableBranch: the branch is the one that is meant, and errors 22 "
    "(TableBranchNotFound) and 11 (TableVersionNotFound) say that it is not there. The reference writes to the main branch and counts that.",
    "columns": "errors, code 12 TableColumnNotFound: a column that is not there is told as such. The reference has 13 or 18 for it.",
    "cut bodies": "errors, code 13 InvalidInput: a body that is no Arrow stream, or ends before it should, is the caller's mistake. The reference says 18, which clients repeat.",
    "delimiters": "spec.yaml, parameter `delimiter`: default `$`. One that is empty counts as not given; with the reference nothing can be named by it.",
    "dots": "RFC 3986, 5.2.4: clients' libraries take a segment `..` out of a path, so what is named so could not be reached again.",
    "e_tags": "spec.yaml, TableVersion: `version` and `manifest_path` are required, `e_tag` is not. The main branch's versions differ as the reference wrote to it what was meant for a branch.",
    "empty changes": "spec.yaml, AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns: the list is what is to be done. The reference commits a version in which nothing has changed.",
    "empty columns": "spec.yaml, NewColumnTransform: an `expression` (or what LanceDB Enterprise computes). A column without one is the caller's mistake, code 13, not 18.",
    "empty locations": "spec.yaml, RegisterTableRequest.location is required. The reference binds the name to the directory of all tables.",
    "empty names": "pages on identifiers: an identifier is a list of names; an empty one is none. The reference leaves it out, and makes something else than was asked for.",
    "error bodies": "spec.yaml, ErrorResponse: every answer that is not 2xx has a JSON body with `code`; clients take one without it for code 18.",
    "full describes": "spec.yaml, DescribeTableRequest.load_detailed_metadata: whoever does not say gets what the implementation chooses; LanceDB's remote client needs version and schema. `stats` is a field of "
    "DescribeTableResponse that the reference leaves out.",
    "idle merges": "spec.yaml, MergeInsertIntoTable: a merge that neither updates, inserts nor deletes is a mistake. The reference commits a version for it.",
    "limits": "spec.yaml, `limit` and `k`: a number of rows or names from 0 on. The reference takes one below 0 for all.",
    "missing lists": "spec.yaml, ListNamespaces and ListTables: 404 with code 1 for a namespace that is not there. The reference lists nothing, as if it were.",
    "missing parents": "spec.yaml, CreateTable, DeclareTable and DescribeTable: 404 with code 1 when the namespace is not there. The reference makes a table in it.",
    "modes": "spec.yaml, CreateNamespaceRequest.mode, DropNamespaceRequest.mode and .behavior: Create, ExistOk, Overwrite; Fail, Skip; Restrict, Cascade. The reference does not look at them.",
    "null": "a body of `null` says nothing, as one that is not there, which both take; every field of CreateNamespaceRequest may be left out.",
    "offsets": "spec.yaml, QueryTableRequest: `k` is how many rows are answered, `offset` how many are passed over before. The reference counts those among the `k`.",
    "page tokens": "spec.yaml, PageToken: opaque. Ours are no names; one that was made up is refused.",
    "plus": "RFC 3986: a plus is itself in a path, but the native client sends it for a space. The identifier in the body says which is meant.",
    "predicates": "errors, code 13 InvalidInput: an expression that cannot be read is the caller's mistake. The reference says 18, which clients repeat.",
    "ranges": "spec.yaml, VersionRange: from `start_version` up to `end_version`. One that goes back is a mistake.",
    "root": "RFC 3986, 5.2.4: with the delimiter `.` clients' libraries make `/v1/namespace/list` of the root's path, so that is served as well.",
    "root names": "the first names are catalogs here, and there is a second one for Iceberg.",
    "schema only": "spec.yaml, CreateTable: a stream of a schema without rows makes an empty table.",
    "schemas": "errors, code 20 TableSchemaValidationError: columns that are not the table's. The reference says 18, or breaks off.",
    "several vectors": "spec.yaml, QueryTableRequestVector.multi_vector: each of them is searched for. The reference searches for the first.",
    "slashes": "a base address with a slash at its end gives paths with two: clients do so.",
    "stats": "spec.yaml, GetTableStatsResponse.num_rows: rows of the table, and what was deleted is none of them. The reference counts it.",
    "tags in describes": "spec.yaml, DescribeTableRequest.tag and .branch: 404 with code 8 or 22 when they are not there. The reference describes the newest version instead.",
    "taken columns": "errors, code 14 ConcurrentModification: somebody else was first. Nobody was here: the name is taken, code 13.",
    "times": "spec.yaml, MergeInsertIntoTable, `timeout`: a time as `30s`. The reference takes a word that is none for no limit.",
    "unserved": "errors, code 0 Unsupported with status 406; clients take 18 for a fault and repeat it. Renames, batches and metadata of fields are served here.",
    "version creates": "spec.yaml, CreateTableVersion: for tables whose versions the server keeps. Of another one the next version is what its files say: code 13 says so, 14 would be tried again.",
    "versions in exists": "spec.yaml, TableExistsRequest.version: 404 with code 11 when it is not there. The reference does not look at it.",
    "bad versions": "errors, code 11 TableVersionNotFound, status 404. The reference has 18, or describes the newest version.",
    "index pages": "spec.yaml, ListTableIndicesRequest.limit: so many of them, and a token for the next. The reference lists all.",
}
ADDED: Final[dict[str, str]] = {
    "transaction_id": "optional in the answer of every write; it can be given to DescribeTransaction",
    "managed_versioning": "DescribeTableResponse, DeclareTableResponse: says who keeps a table's versions, also where it is the storage",
    "properties": "DeregisterTableResponse, DropTableResponse: the properties of what is gone",
    "page_token": "ListTableVersionsResponse: there is more than `limit` let through",
    "rows_updated": "what LanceDB's remote client reads for `updated_rows`",
    "num_deleted_rows": "what LanceDB's remote client reads after a delete",
    "version": "the version that was made or is described; of a describe it is part of what LanceDB's remote client needs",
}
