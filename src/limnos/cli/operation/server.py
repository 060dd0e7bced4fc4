# SPDX-License-Identifier: Apache-2.0
"""`server start | check | migrate | backup | restore | config`: a server on this machine."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from limnos.cli.command_line import typed_tokens
from limnos.cli.extras import import_extra
from limnos.cli.failures import UsageError
from limnos.cli.grammar.spelling import nearest
from limnos.cli.output import Format, format_of, show_rows, visible
from limnos.model.errors import CannotStart, StartWarning

if TYPE_CHECKING:
    from limnos.config import LoadedSettings, Settings

app = App(name="server")
ROOM = "limnos.app.server"
CHECKS = "limnos.app.server_checks"
BACKUPS = "limnos.app.backups"

OutputFlag = Annotated[Format | None, Parameter(env_var="LIMNOS_OUTPUT", help="`table` on a terminal, else `json`.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFlags:
    """The settings that have a flag. Flags take precedence over the environment and the file."""

    data: Annotated[str | None, Parameter(help="Directory of database, warehouse and admin token.")] = None
    listen: Annotated[str | None, Parameter(help="HOST:PORT to listen on; port 0 chooses a free port.")] = None
    host_name: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="Name by which clients reach this server, beside the listen address; repeatable."),
    ] = ()
    certificate: Annotated[str | None, Parameter(help="PEM file of the server's certificate, for TLS.")] = None
    key: Annotated[str | None, Parameter(help="PEM file of the certificate's key.")] = None
    database: Annotated[str | None, Parameter(help="postgresql:// URL of a shared store; else an SQLite file.")] = (
        field(default=None, repr=False)
    )
    config: Annotated[Path | None, Parameter(help="TOML file with settings.")] = None
    access: Annotated[Literal["on", "off"] | None, Parameter(help="Whether access control is on.")] = None
    authentication: Annotated[
        Literal["simple", "token"] | None,
        Parameter(help="`simple` believes the user name of each local program; the default is `token`."),
    ] = None
    admin: Annotated[str | None, Parameter(help="The first service admin.")] = None
    workers: Annotated[int | None, Parameter(help="Number of server processes; at most one per core.")] = None
    sqlpp: Annotated[Literal["on", "off"] | None, Parameter(help="Whether SQL++ is served.")] = None
    bare: Annotated[bool, Parameter(negative="", help="Do not create a metalake and catalog in an empty store.")] = (
        False
    )
    insecure_listen: Annotated[
        bool, Parameter(negative="", help="Listen beyond loopback although clients are not authenticated.")
    ] = False

    warehouse: Annotated[
        str | None, Parameter(help="Default location of tables: s3://BUCKET/PATH, or a directory that all nodes share.")
    ] = None
    allow_root: Annotated[
        tuple[str, ...], Parameter(negative="", help="Location below which catalogs may have tables; may be repeated.")
    ] = ()
    allow_endpoint: Annotated[
        tuple[str, ...], Parameter(negative="", help="URL of an object store that catalogs may use; may be repeated.")
    ] = ()
    allow_source: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="HOST:PORT of an external system that catalogs may use; may be repeated."),
    ] = ()

    def load(self) -> LoadedSettings:
        """Combine flags, environment and file. Raises ConfigError for an invalid setting."""
        from limnos.config import load

        arguments: dict[str, object] = {
            "server.data": self.data,
            "server.listen": self.listen,
            "server.hosts": self.host_name or None,
            "tls.certificate": self.certificate,
            "tls.key": self.key,
            "database.url": self.database,
            "access.enabled": self.access,
            "access.authentication": self.authentication,
            "server.admin": self.admin,
            "server.workers": self.workers,
            "sqlpp.enabled": self.sqlpp,
            "server.bare": self.bare or None,
            "storage.warehouse": self.warehouse,
            "storage.allowed_roots": self.allow_root or None,
            "storage.allowed_endpoints": self.allow_endpoint or None,
            "sources.allowed_addresses": self.allow_source or None,
            "server.insecure_listen": self.insecure_listen or None,
        }
        return load(flags=arguments, file=self.config, environ=os.environ)


NO_FLAGS = ServerFlags()


@app.command
def start(*, flags: ServerFlags = NO_FLAGS) -> int:
    """Serve all protocols on one host and port until SIGTERM. Prints `ready URL` when it serves."""
    run: Callable[[LoadedSettings], int] = import_extra(ROOM, extra="server").start
    return run(flags.load())


@app.command
def check(*, flags: ServerFlags = NO_FLAGS, output: OutputFlag = None) -> int:
    """Check whether a server could start: settings, address, TLS, packages, directory, store. Exit code 1 if not.

    Standard error lists optional parts that a started server would still lack, such as a JAR file for SQL++ over data.
    """
    settings = flags.load().settings
    find_errors: Callable[[Settings], Sequence[CannotStart]] = import_extra(CHECKS, extra="server").check
    rows = [
        {
            "problem": cannot_start.message,
            "why": cannot_start.why,
            "next": cannot_start.advice,
            "stops": not isinstance(cannot_start, StartWarning),
        }
        for cannot_start in find_errors(settings)
    ]
    output_format = _format_of(output)
    if rows and output_format == "table":
        print(visible("\n".join(line for row in rows for line in _problem_lines(row))))
    else:
        show_rows(rows, ["problem", "why", "next", "stops"], output_format=output_format, empty="no problems found")
    find_notes: Callable[[Settings], Sequence[str]] = import_extra(CHECKS, extra="server").startup_notes
    for each in find_notes(settings):
        print(f"note: {each}", file=sys.stderr)
    return 1 if any(row["stops"] for row in rows) else 0


def _problem_lines(row: Mapping[str, object]) -> Iterator[str]:
    """Return a problem as lines that no terminal cuts."""
    yield f"{'error' if row['stops'] else 'warning'}: {row['problem']}"
    yield from (f"  {key}: {row[key]}" for key in ("why", "next") if row[key])


@app.command
def migrate(
    *,
    restored: Annotated[bool, Parameter(negative="")] = False,
    keep_tokens: Annotated[bool, Parameter(negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    flags: ServerFlags = NO_FLAGS,
) -> None:
    """Migrate the store's schema to this version. A server also does so when it starts.

    Parameters
    ----------
    restored
        The store was just restored from a backup: revoke its tokens, and make every node discard its cached state.
    keep_tokens
        With --restored: keep tokens valid, although some may have been revoked since the backup.
    force
        With --restored: also while a server uses the store.
    """
    settings = flags.load().settings
    migrate_store: Callable[..., str] = import_extra(ROOM, extra="server").migrate
    print(migrate_store(settings, restored=restored, keeps_tokens=keep_tokens, beside_servers=force))


@app.command
def backup(file: Path, /, *, flags: ServerFlags = NO_FLAGS) -> None:
    """Back up an SQLite store to FILE, also while a server runs. An existing file is not overwritten."""
    if not file.parent.is_dir():
        again = [file.name if token == str(file) else token for token in typed_tokens.get()]
        raise UsageError(f"there is no directory '{file.parent}'", hint=f"'{shlex.join(['limnos', *again])}'")
    settings = flags.load().settings
    copy: Callable[..., str] = import_extra(BACKUPS, extra="server").backup
    print(copy(settings, file))


@app.command
def restore(
    file: Path,
    /,
    *,
    keep_tokens: Annotated[bool, Parameter(negative="")] = False,
    plain_copy: Annotated[bool, Parameter(negative="")] = False,
    without_keys: Annotated[bool, Parameter(negative="")] = False,
    flags: ServerFlags = NO_FLAGS,
) -> None:
    """Restore a backup over an SQLite store that no server uses. The replaced store is renamed and stays in the same
    directory.

    Parameters
    ----------
    keep_tokens
        Keep tokens valid, including tokens that were revoked after the backup.
    plain_copy
        Confirm that no server ran while a copy was made without `server backup`.
    without_keys
        Restore even if keys are missing that the backup's secrets are encrypted with.
    """
    settings = flags.load().settings
    restore_store: Callable[..., str] = import_extra(BACKUPS, extra="server").restore
    print(restore_store(settings, file, keeps_tokens=keep_tokens, vouched=plain_copy, without_keys=without_keys))


@app.command
def janitor(
    *,
    dry_run: Annotated[bool, Parameter(negative="", help="Only list what would be removed.")] = False,
    flags: ServerFlags = NO_FLAGS,
    output: OutputFlag = None,
) -> None:
    """Remove orphaned metadata files and empty directories. A server does so once a day."""
    settings = flags.load().settings
    clean: Callable[..., Sequence[str]] = import_extra(ROOM, extra="server").janitor
    rows = [{"path": path} for path in clean(settings, dry_run=dry_run)]
    show_rows(rows, ["path"], output_format=_format_of(output), empty="nothing to remove")


@app.command
def config(setting: str | None = None, /, *, flags: ServerFlags = NO_FLAGS, output: OutputFlag = None) -> None:
    """Show every setting with its value and origin; with SETTING that one. Secrets are masked.

    Parameters
    ----------
    setting
        A setting, as `storage.warehouse`, or a section of settings, as `storage`.
    """
    from limnos.config.report import rows

    setting_rows = rows(flags.load())
    chosen_rows = [row for row in setting_rows if setting is None or f"{row.key}.".startswith(f"{setting.lower()}.")]
    if setting is not None and not chosen_rows:
        names = [row.key for row in setting_rows]
        near = nearest(setting.lower(), names) or next((each for each in names if setting.lower() in each), None)
        hint = f"did you mean 'limnos server config {near}'?" if near else "'limnos server config' lists them"
        raise UsageError(f"there is no setting '{setting}'", hint=hint)
    results = [{"setting": row.key, "value": row.value, "origin": row.origin} for row in chosen_rows]
    show_rows(results, ["setting", "value", "origin"], output_format=_format_of(output))


def _format_of(output: Format | None) -> Format:
    return output or format_of((), os.environ, terminal=sys.stdout.isatty())
