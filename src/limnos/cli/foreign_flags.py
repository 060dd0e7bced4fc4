# SPDX-License-Identifier: Apache-2.0
"""Flags, values and words of other tools that stand in a wrong place here, as plain data.

Flags with another name here are in `flags`; words for commands are in `guesses`. `hints.slips` makes the messages.
"""

from __future__ import annotations

import re
from typing import Final

_OTHER_COMMANDS: Final = (
    ("user list", "--role|--roles", "the list has the roles of each user", "'limnos list users'"),
    ("user list", "--group|--groups|--member-of", "a group has its users", "'limnos show group {value}'"),
    ("whoami", "--groups", "groups and roles are shown with the user", "'limnos show user {0}'"),
    (
        "policy create",
        "--mask",
        "masks are of restrictions",
        "'limnos create restriction {0} PATH --mask {1}=ACTION'",
    ),
    (
        "policy create",
        "--filter",
        "filters are of restrictions",
        "'limnos create restriction {0} PATH --filter CONDITION'",
    ),
    (
        "list|show",
        "--select|--models|--exclude|-s|-m",
        "steps of a pipeline are selected by commands of its file",
        "'limnos pipeline plan FILE --select {value}'",
    ),
    (
        "undrop",
        "--version|--snapshot|--to-version|--timestamp",
        "engines and LanceDB's clients return a table to a version",
        "'limnos show {0}' shows the newest one",
    ),
    (
        "find",
        "--vector|--embedding|--nearest|--similar",
        "rows are searched by vectors with LanceDB's clients",
        "'limnos show TABLE' has the vectors of a table",
    ),
    ("list", "--tree", "a tree is another command", "'limnos tree {0}'"),
    (
        "logout",
        "--all|-a",
        "it ends one session",
        "'limnos list profiles' lists them, 'limnos logout --profile NAME' ends one",
    ),
    (
        "export",
        "--to|--out|--output-file|--file|--save|-o|-f",
        "it goes to standard output",
        "'limnos export {0}' > {value}",
    ),
    (
        "request grant",
        "--preset",
        "a request is granted as it was made",
        "'limnos grant --preset {value} PATH --to user:NAME' grants another preset, 'limnos list requests' has both",
    ),
    ("console", "--no-browser", "the address is printed in any case", "'limnos console --no-open'"),
    (
        "access who|access holders",
        "--missing",
        "missing rights are those of a user",
        "'limnos access what USER {0} --missing reader'",
    ),
    (
        "show",
        "--version",
        "'show' has the newest version, and the versions of a model",
        "'limnos show {0}'; of a table 'limnos list snapshots {0}' has the ids, 'limnos head {0} --snapshot ID' rows",
    ),
    (
        "delete",
        "--version|--snapshot",
        "it deletes a whole object",
        "'limnos show {0}' has the versions; client.models.unlink('{0}', NUMBER) removes one of a model",
    ),
    (
        "set",
        "--alias|--aliases",
        "aliases of a model's versions are set by limnos.client (models.set_aliases) and Gravitino's clients",
        "'limnos show {0}' shows the versions with theirs",
    ),
    (
        "sql",
        "--catalog",
        "names in statements begin below the catalog main",
        "leave --catalog out; '--dataverse NAME' is a namespace for names without one",
    ),
    (
        "sql",
        "--lake",
        "statements read the metalake and the catalog of the server's settings",
        "leave --lake out; '--dataverse NAME' is a namespace for names without one",
    ),
    (
        "pipeline check",
        "--select|--exclude|--only",
        "a check is of the whole file",
        "'limnos pipeline plan {0} --select {value}' is of some steps",
    ),
    (
        "changes",
        "--since|--from|--newer-than|--last",
        "the feed has positions, and the audit has times",
        "'limnos audit --action change --since {value}'",
    ),
    (
        "head",
        "--tag|--branch|--ref",
        "tags and branches refer to snapshots, which it shows by id",
        "'limnos list snapshots {0}' has the id of each tag, for 'limnos head {0} --snapshot ID'",
    ),
    (
        "audit",
        "--tail|--follow",
        "it shows the newest lines first",
        "'limnos changes --follow' follows changes as they are committed",
    ),
)
OTHER_COMMANDS: Final = {
    (command, flag): (reason, instead)
    for commands, flags, reason, instead in _OTHER_COMMANDS
    for command in commands.split("|")
    for flag in flags.split("|")
}
"""Flags of other tools for what another command does: the reason, and the command."""
PLACES: Final = {
    "audit": ("audit --who {1}", "audit --what {1}"),
    "user list": ("show user {1}",),
    "group list": ("show group {1}",),
    "role list": ("show role {1}",),
    "pipeline list": ("list runs {1}",),
    "pipeline test": ("pipeline test {0} --test {1}", "pipeline test {0} --select {1}"),
    "pipeline run": ("pipeline run {0} --select {1}",),
    "pipeline plan": ("pipeline plan {0} --select {1}",),
    "token create": ("create token --for {1}",),
    "token list": ("list tokens --for {1}",),
    "whoami": ("whoami --as {1}",),
    "sql": ("sql -c {+}",),
    "ask": ("ask {+}",),
    "login": ("login {0}",),
    "group create": ("create group {0}",),
    "tag create": ("set tag {0} {1}",),
    "tag delete": ("tag remove {0} {1}",),
    "role delete": ("revoke role {0} --from {1}",),
    "rename": ("rename {0} {1}",),
    "lineage up": ("lineage up {0}",),
    "changes": ("changes --catalog {1}", "changes --catalog {catalog}"),
}
"""Where the last word belongs that a command has no place for; the second form is for a path. `{0}` is the first
argument, `{2}` the second, `{1}` the last, `{catalog}` the catalog of that one, `{+}` all of them.
"""
_SECOND_COMMANDS: Final = (
    ("user add", "--role|--roles", "grant role {value} --to {name}"),
    ("user add", "--password|-p", "set password {name}"),
    ("user add", "--group|--groups", "group add {value} {name}"),
    ("group create", "--user|--member|--members", "group add {name} {value}"),
    ("role create", "--privilege|--privileges|--grant", "grant {value} --on PATH --to {name}"),
)
SECOND_COMMANDS: Final = {
    (command, flag): second for command, flags, second in _SECOND_COMMANDS for flag in flags.split("|")
}
"""Flags of other tools' `create`, and the second command that does it here."""
_LIST_FILTERS: Final = """
    --where --filter --sort --sort-by --order --order-by --limit --max-items --page-size --query
    --selector --since --until --last -n
"""
LIST_FILTERS: Final = frozenset(_LIST_FILTERS.split())
"""Flags of other tools that filter, sort or cut lists."""
CHOICES: Final = {
    word: choice
    for choice, words in {
        "refused": "denied deny forbidden rejected unauthorized",
        "failed": "error errors failure fail failing",
        "done": "success succeeded ok allowed completed",
        "json": "yaml yml jsonl ndjson jsonpath",
        "csv": "tsv",
        "table": "text wide plain pretty markdown md",
        "iceberg-rest": "rest polaris nessie lakekeeper unity unity-catalog",
        "jdbc-catalog": "jdbc sql sqlcatalog postgres postgresql sqlite database pyiceberg",
        "hive": "hms metastore hive-metastore thrift",
        "glue": "aws aws-glue glue-like gluecatalog",
        "directory": "dir folder path hadoop files",
    }.items()
    for word in words.split()
}
"""Others' words for the choices of a flag."""
FIND_FILTERS: Final = {"--owner": "owner", "--owned-by": "owner", "--tag": "tag"}
"""Filters of `find`, by flags that are typed for `list`."""
SHORT_KINDS: Final = {"ns": "namespace", "db": "namespace", "cat": "catalog", "tbl": "table", "t": "table"}
"""Short kinds of other tools, which a catalog may be called too."""
FILE: Final = re.compile(r".*\.(?:ya?ml|json|toml|tf|sql)|.*/.*|-")
"""Names of files that other tools read where paths of objects stand here."""
PRIVILEGE_ACTIONS: Final = {
    "create_catalog": "catalog_create",
    "use_catalog": "catalog_load",
    "create_schema": "namespace_create",
    "use_schema": "namespace_load",
    "create_table": "table_create",
    "select_table": "table_read",
    "modify_table": "table_commit",
    "create_view": "view_create",
    "select_view": "view_load",
    "create_fileset": "fileset_create",
    "read_fileset": "fileset_read",
    "write_fileset": "fileset_alter",
    "create_topic": "topic_create",
    "consume_topic": "topic_load",
    "produce_topic": "topic_alter",
    "register_model": "model_create",
    "use_model": "model_load",
    "link_model_version": "model_link",
    "register_function": "function_create",
    "execute_function": "function_load",
    "modify_function": "function_alter",
    "manage_users": "user_manage",
    "manage_groups": "group_manage",
    "create_role": "role_create",
    "manage_grants": "privilege_grant",
    "create_tag": "tag_create",
    "apply_tag": "tag_apply",
    "create_policy": "policy_create",
    "apply_policy": "policy_apply",
    "register_job_template": "job_template_create",
    "use_job_template": "job_template_load",
    "run_job": "job_run",
}
"""For each privilege an action that needs it, as `access explain` takes it."""
CLIENTS: Final = frozenset(
    [
        "beeline",
        "clickhouse-client",
        "cockroach",
        "duckdb",
        "hive",
        "impala-shell",
        "mariadb",
        "mysql",
        "presto",
        "psql",
        "snowsql",
        "spark-sql",
        "sqlcmd",
        "sqlite3",
        "trino",
    ]
)
"""Shells of databases, which take a statement as the value of a flag."""
STATEMENT_FLAGS: Final = ("-c", "-e", "-q", "-Q", "--command", "--execute", "--query", "--sql")
"""The flags of these shells for a statement."""
SHELL_COMMANDS: Final = re.compile(r"\s*[\\.!][A-Za-z?+]+.*")
"""A command of such a shell, which is no statement: `\\dt`, `.tables`, `!tables`."""
