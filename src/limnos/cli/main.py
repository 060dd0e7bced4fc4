# SPDX-License-Identifier: Apache-2.0
"""The entry point: it finds and runs the command, and converts any failure to a message and an exit code.

May import cyclopts, `model` for secrets, and this package. Command modules are imported only when they are called, so
that `limnos --version` and `--help` respond quickly.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from limnos import __version__
from limnos.cli import failures
from limnos.cli.command_line import command_first, misspelt_variables
from limnos.cli.hints import TypedCommand
from limnos.cli.output import Format, format_of
from limnos.cli.redaction import collect_secrets
from limnos.model.secrets import hide_secrets

COMMANDS = {
    "server": "Start a server, or check, migrate and configure one.",
    "ls": "List catalogs, namespaces, tables and views.",
    "find": "Search objects by name, words, tag or owner.",
    "describe": "Show an object's properties.",
    "head": "Show the first rows of a table, or of a fileset's file.",
    "files": "List the files of a fileset.",
    "create": "Create a metalake, catalog or namespace.",
    "drop": "Drop a metalake, catalog, namespace, table or view.",
    "trash": "List dropped objects that can be restored.",
    "undrop": "Restore a dropped namespace or object, such as a table.",
    "protect": "Protect an object from being dropped.",
    "unprotect": "End the protection of an object.",
    "restriction": "Restrict the rows and column values that users may read.",
    "audit": "Show users' operations on objects, with the privileges that allowed them.",
    "reports": "List clients' reports of scans of a table and commits to it.",
    "lineage": "Show the sources of a table, view or column, and the objects derived from it.",
    "mv": "Rename or move a namespace with its content, a table or a view.",
    "names": "Change names of namespaces so that namespaces can nest.",
    "user": "Add, remove, list, disable and enable users.",
    "group": "Manage groups and their members.",
    "role": "Manage roles.",
    "grant": "Grant a role to a user or group, or privileges to a role.",
    "revoke": "Revoke a role from a user or group, or privileges from a role.",
    "tag": "Manage tags and their objects.",
    "owner": "Show and set owners.",
    "token": "Create, list and revoke API tokens.",
    "table": "Check a table's files and metadata, and mend its metadata.",
    "maintenance": "Show the maintenance that tables need, with reasons.",
    "storage": "Check a catalog's storage, and manage the keys that seal secrets.",
    "login": "Sign in with a password, or in a browser.",
    "logout": "End a session.",
    "console": "Open the console in a browser, signed in.",
    "profile": "List and choose servers with a session.",
    "node": "List the server's nodes, and the settings of the one that answers.",
    "task": "List and retry the server's background tasks.",
    "export": "Export a metalake to a file.",
    "import": "Create a metalake from an export.",
    "records": "Keep exports in a key-value database, and inspect them.",
    "changes": "Show committed changes, and follow new ones.",
    "webhook": "Send committed changes to a URL.",
    "pipeline": "Pipelines and their runs.",
    "job": "Programs and Spark applications that the server runs.",
    "sql": "Run SQL++ statements, or an SQL++ shell.",
    "lance": "List or serve directories of Lance tables, or register them in a server.",
    "access": "Explain access decisions, and list users' access.",
    "whoami": "Show your user name on the server.",
    "spark": "What Spark needs.",
    "demo": "Run the demonstration pipeline on real data.",
}
"""Every command with its line of help, in the order of the help page."""

_MODULES = {
    "server": "limnos.cli.operation.server:app",
    "ls": "limnos.cli.catalog.tree:ls",
    "find": "limnos.cli.catalog.find:find",
    "describe": "limnos.cli.catalog.tree:describe",
    "head": "limnos.cli.catalog.head:head",
    "files": "limnos.cli.catalog.head:files",
    "create": "limnos.cli.catalog.create:app",
    "drop": "limnos.cli.catalog.tree:drop",
    "trash": "limnos.cli.catalog.trash:app",
    "undrop": "limnos.cli.catalog.trash:undrop",
    "protect": "limnos.cli.governance.protection:protect",
    "unprotect": "limnos.cli.governance.protection:unprotect",
    "restriction": "limnos.cli.governance.restrictions:app",
    "audit": "limnos.cli.operation.audit:app",
    "reports": "limnos.cli.pipeline.reports:reports",
    "lineage": "limnos.cli.pipeline.lineage:app",
    "mv": "limnos.cli.catalog.tree:mv",
    "names": "limnos.cli.catalog.nesting:app",
    "user": "limnos.cli.identity.users:app",
    "group": "limnos.cli.identity.groups:app",
    "role": "limnos.cli.identity.roles:app",
    "grant": "limnos.cli.identity.grants:grant",
    "revoke": "limnos.cli.identity.grants:revoke",
    "tag": "limnos.cli.governance.tags:app",
    "owner": "limnos.cli.identity.owners:app",
    "token": "limnos.cli.identity.tokens:app",
    "table": "limnos.cli.catalog.table:app",
    "maintenance": "limnos.cli.operation.maintenance:app",
    "storage": "limnos.cli.operation.storage:app",
    "login": "limnos.cli.identity.login:login",
    "logout": "limnos.cli.identity.login:logout",
    "console": "limnos.cli.identity.console:console",
    "profile": "limnos.cli.identity.login:app",
    "node": "limnos.cli.operation.nodes:app",
    "task": "limnos.cli.operation.tasks:app",
    "export": "limnos.cli.catalog.exchange:export",
    "import": "limnos.cli.catalog.exchange:import_",
    "records": "limnos.cli.catalog.records:app",
    "changes": "limnos.cli.catalog.changes:changes",
    "webhook": "limnos.cli.operation.webhooks:app",
    "pipeline": "limnos.cli.pipeline.pipelines:app",
    "job": "limnos.cli.pipeline.jobs:app",
    "sql": "limnos.cli.sqlpp.sql:sql",
    "lance": "limnos.cli.catalog.lance:app",
    "access": "limnos.cli.identity.access:app",
    "whoami": "limnos.cli.catalog.tree:whoami",
    "spark": "limnos.cli.operation.spark:app",
    "demo": "limnos.cli.operation.spark:demo",
}

EPILOGUE = (
    "Start a server with 'limnos server start'. Paths are written catalog.namespace.table, back-quotes where needed."
)


def build(command: str | None = None) -> App:
    """Build the command tree. Modules are imported only when their command is used.

    The module of `command` is imported, so that the help text is its own docstring instead of the line in `COMMANDS`.
    """
    app = App(
        name="limnos",
        help="A metadata lake: one governed tree of names for lakehouse data.",
        help_epilogue=EPILOGUE,
        version=f"limnos {__version__}",
        help_format="markdown",
        sort_key=None,
    )
    for order, (name, summary) in enumerate(COMMANDS.items()):
        app.command(
            _MODULES[name],
            name=name,
            help=None if name == command and not _MODULES[name].endswith(":app") else summary,
            sort_key=order,
        )
    return app


app = build()
"""The whole command tree, for tests and documentation."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see `failures.ExitCode`)."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    output_format = format_of(tokens, os.environ, terminal=sys.stdout.isatty())
    for warning in misspelt_variables(os.environ):
        print(f"warning: {warning}", file=sys.stderr)
    try:
        tree = build(tokens[0] if tokens else None)
        result = tree(command_first(tokens, tree), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed our output; keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(failures.ExitCode.FAILED)
    except KeyboardInterrupt:
        return int(failures.ExitCode.INTERRUPTED)
    except CycloptsError as error:
        return _fail(failures.usage(str(error), _command(tokens)), tokens, output_format=output_format)
    except Exception as error:  # noqa: BLE001 - unexpected errors are reported below
        failure = failures.failure_of(error, TypedCommand(tokens))
        if failure is None:
            return _report(error, tokens, output_format=output_format)
        return _fail(failure, tokens, output_format=output_format)
    return result if isinstance(result, int) else 0


def _fail(failure: failures.CommandFailure, tokens: Sequence[str], *, output_format: Format) -> int:
    """Print a failure to standard error, with secrets from arguments and environment masked. Returns the exit code."""
    text = hide_secrets(failures.render(failure, output_format), collect_secrets(tokens, os.environ))
    print(text, file=sys.stderr)
    return int(failure.exit_code)


def _report(error: Exception, tokens: Sequence[str], *, output_format: Format) -> int:
    """Print an unexpected exception without local variables and secrets. Returns the exit code."""
    lines = "".join(traceback.format_exception(error))
    print(hide_secrets(lines, collect_secrets(tokens, os.environ)), end="", file=sys.stderr)
    return _fail(failures.unexpected_failure(error), tokens, output_format=output_format)


def _command(tokens: Sequence[str]) -> str:
    """Return the longest existing command at the start of the command line, for the hint to its help page."""
    words, tree = ["limnos"], build()
    for token in tokens[:2]:
        if token.startswith("-") or token not in tree:
            break
        words.append(token)
        tree = tree[token]
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
