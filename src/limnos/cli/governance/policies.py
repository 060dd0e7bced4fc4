# SPDX-License-Identifier: Apache-2.0
"""`policy create | delete | list | describe | enable | disable | add | remove`: policies and their objects."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from limnos.cli.catalog.columns import require_columns
from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, AttachedColumnFlag, AttachedKindFlag, Comment, CommonFlags, YesFlag, confirm
from limnos.cli.errors import UsageError
from limnos.cli.governance.tags import target_fields, target_text
from limnos.cli.output import Row, show_done, show_rows
from limnos.client.values import MetadataObject

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.governance.policies import Policy

app = App(name="policy")
TypeFlag = Annotated[
    str,
    Parameter(
        name="--type",
        help=(
            'The policy\'s type: `custom` has rules of any form, as {"customRules": {"keep": "1y"},'
            ' "supportedObjectTypes": ["TABLE"]}; `system_iceberg_table_maintenance` takes {};'
            " `system_iceberg_compaction`, `system_iceberg_snapshot_expiration`, `system_iceberg_orphan_file_removal`"
            " and `limnos-row-retention` have the fields of the guide to maintenance."
        ),
    ),
]
ContentFlag = Annotated[
    str | None, Parameter(name="--content", help="The content as JSON, `@FILE` for a file, or `-` for standard input.")
]


@app.command
def create(
    name: str,
    /,
    *,
    type: TypeFlag = "custom",
    content: ContentFlag = None,
    comment: Comment = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a policy, which you own. It applies to the objects to which it is attached, and to those below.

    Parameters
    ----------
    name
        The policy's name, such as `keep-30-days`.
    """
    if content is None:
        raise UsageError(
            "a policy needs a content",
            hint=f"'limnos create policy {shlex.quote(name)} --type TYPE --content @policy.json'",
        )
    with common.client() as client:
        policy = client.policies.create(name, _content_of(content), policy_type=type, comment=comment)
    show_done(f"created policy {policy.name}", _row(policy), output_format=common.output_format)


def _content_of(text: str) -> dict[str, object]:
    """Return the content that a flag names. Raises UsageError for a file that cannot be read, or no JSON object."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        content = json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"--content is no JSON: {error}", hint="--content @policy.json reads a file") from None
    if not isinstance(content, dict):
        raise UsageError("--content is no JSON object", hint="""--content '{"customRules": {}}'""")
    return content


@app.command
def delete(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a policy and detach it from all objects.

    Parameters
    ----------
    name
        The policy's name.
    """
    confirm(f"Delete policy {name} of metalake {common.metalake}?", yes=yes)
    with common.client() as client:
        require(client.policies.delete(name), "policy", name)
    show_done(f"deleted policy {name}", {"deleted": name}, output_format=common.output_format)


@app.command(name="list")
def list_policies(
    path: str | None = None,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the policies you may see; with a path, the policies of an object or of a column, including inherited ones.

    Parameters
    ----------
    path
        A catalog, namespace or table, as `main.raw.nyc`.
    """
    if path is None and column is not None:
        hint = f"'{shlex.join(['limnos', 'list', 'policies', 'PATH', '--column', column])}'"
        raise UsageError("--column needs the table of the column", hint=hint)
    with common.client() as client:
        if path is None:
            rows, columns = [_row(each) for each in client.policies.list()], ["name", "type", "enabled", "comment"]
        else:
            policies = client.policies.on(path, kind=kind or client.objects.kind(path), column=column)
            rows = [{**_row(each), "inherited": each.inherited} for each in policies]
            columns = ["name", "type", "enabled", "inherited", "comment"]
    show_rows(rows, columns, output_format=common.output_format, empty="no policies")


@app.command
def describe(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a policy with its content, and the visible objects that have it.

    Parameters
    ----------
    name
        The policy's name.
    """
    with common.client() as client:
        policy, objects = client.policies.get(name), client.policies.objects(name)
        rows = [_object_row(client, each) for each in objects]
    fields = {**_row(policy), "content": policy.content, "objects": rows}
    if common.output_format == "json":
        show_done("", fields, output_format="json")
        return
    state = "enabled" if policy.enabled else "disabled"
    print(f"{policy.name}  {policy.policy_type}, {state}{f'  {policy.comment}' if policy.comment else ''}")
    print(json.dumps(policy.content, indent=2))
    show_rows(rows, ["kind", "object"], output_format="table", empty="attached to no object that you may see")


@app.command
def enable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Enable a policy.

    Parameters
    ----------
    name
        The policy's name.
    """
    _switch(name, enabled=True, common=common)


@app.command
def disable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Disable a policy: it stays attached, and has no effect.

    Parameters
    ----------
    name
        The policy's name.
    """
    _switch(name, enabled=False, common=common)


def _switch(name: str, *, enabled: bool, common: CommonFlags) -> None:
    with common.client() as client:
        client.policies.enable(name, enabled=enabled)
    word = "enabled" if enabled else "disabled"
    show_done(f"{word} policy {name}", {"name": name, "enabled": enabled}, output_format=common.output_format)


@app.command
def add(
    name: str,
    path: str,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Attach a policy to an object, such as a catalog, namespace or table, or to a column. Objects below inherit it.

    Parameters
    ----------
    name
        The policy's name.
    path
        The object, as `main.raw.nyc`.
    """
    with common.client() as client:
        if column is not None:
            require_columns(client, path, columns=[column])
        names = client.policies.change(path, kind=kind or client.objects.kind(path), column=column, adds=(name,))
    fields = {**target_fields(path, column), "policies": list(names)}
    show_done(f"policy {name} is on {target_text(path, column)}", fields, output_format=common.output_format)


@app.command
def remove(
    name: str,
    path: str,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Detach a policy from an object, such as a catalog, namespace or table, or from a column.

    Parameters
    ----------
    name
        The policy's name.
    path
        The object, as `main.raw.nyc`.
    """
    with common.client() as client:
        names = client.policies.change(path, kind=kind or client.objects.kind(path), column=column, removes=(name,))
    fields = {**target_fields(path, column), "policies": list(names)}
    show_done(f"policy {name} is no longer on {target_text(path, column)}", fields, output_format=common.output_format)


def _row(policy: Policy) -> Row:
    return {
        "name": policy.name,
        "type": policy.policy_type,
        "enabled": policy.enabled,
        "comment": policy.comment,
    }


def _object_row(client: Client, metadata_object: MetadataObject) -> Row:
    return {
        "kind": "namespace" if metadata_object.type == "schema" else metadata_object.type,
        "object": client.objects.path(metadata_object.full_name, kind=metadata_object.type),
    }
