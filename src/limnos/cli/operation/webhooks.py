# SPDX-License-Identifier: Apache-2.0
"""`webhook create | list | drop | retry`: webhooks of a metalake.

The commands are for owners of metalakes. A secret is printed once, or written to a file that only its owner can read.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from cyclopts import App

from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import UsageError
from limnos.cli.identity.tokens import write_secret
from limnos.cli.output import show_done, show_fields, show_rows

app = App(name="webhook")


@app.command
def create(
    url: str,
    /,
    *,
    after: str | None = None,
    operations: str | None = None,
    save: Path | None = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a webhook that sends the changes visible to you to a URL, and print the signing secret once.

    Parameters
    ----------
    url
        The receiver's URL, below a URL of the server's setting events.allowed_urls.
    after
        The position after which to begin, or `oldest`; by default only new changes are sent.
    operations
        Send the changes with these operations alone: `fail,late,pause` for alerts about pipelines.
    save
        Write the secret to a new file of mode 600, and do not print it.
    """
    if save is not None and save.exists():
        raise UsageError(f"the file '{save}' exists already", hint="choose another name, or remove it first")
    with common.client() as client:
        words = [word.strip() for word in (operations or "").split(",") if word.strip()]
        webhook = client.webhooks.create(url, after=after, operations=words)
    fields = msgspec.structs.asdict(webhook)
    if save is not None:
        write_secret(save, webhook.secret)
        fields |= {"secret": None, "file": str(save)}
    show_fields(fields, output_format=common.output_format)


@app.command(name="list")
def list_webhooks(*, common: CommonFlags = DEFAULTS) -> None:
    """List webhooks with their pending revisions and last errors."""
    with common.client() as client:
        rows = [msgspec.structs.asdict(webhook) for webhook in client.webhooks.list()]
    columns = ["id", "url", "user", "operations", "state", "behind", "delivered_at", "attempts", "due_at", "error"]
    show_rows(rows, columns, output_format=common.output_format, empty="no webhooks")


@app.command
def drop(webhook_id: int, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a webhook; undelivered changes are not sent.

    Parameters
    ----------
    webhook_id
        Its id, as `limnos list webhooks` shows it.
    """
    confirm(f"Drop webhook {webhook_id}?", yes=yes)
    with common.client() as client:
        client.webhooks.drop(webhook_id)
    show_done(f"dropped webhook {webhook_id}", {"dropped": webhook_id}, output_format=common.output_format)


@app.command
def retry(webhook_id: int, /, *, after: str | None = None, common: CommonFlags = DEFAULTS) -> None:
    """Retry a webhook now, even if it stopped because its next changes have been deleted.

    Parameters
    ----------
    webhook_id
        Its id, as `limnos list webhooks` shows it.
    after
        Continue after this position, `oldest` or `now`; by default after the last delivered change.
    """
    with common.client() as client:
        client.webhooks.retry(webhook_id, after=after)
    show_done(f"webhook {webhook_id} will be retried", {"retried": webhook_id}, output_format=common.output_format)
