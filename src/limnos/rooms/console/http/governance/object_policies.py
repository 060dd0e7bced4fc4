# SPDX-License-Identifier: Apache-2.0
"""The tab about the policies of a catalog or namespace: its own and the inherited ones, and a form that attaches one.

The services make all access decisions.
"""

from __future__ import annotations

from typing import cast

from limnos.model.kinds import Kind
from limnos.model.records import PolicyRecord
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, segment_of
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import FormInput, FormView, Sheet, SheetCell, SheetColumn, TabPart, hidden_fields
from limnos.rooms.console.http.tabs import Chip
from limnos.services.governance.attachments import ObjectAttachment, attachments_list
from limnos.services.lookup.securables import AttachmentTarget, render_full_name
from limnos.services.request.name_codecs import codec_for


async def policies_tab(page_request: PageRequest, address: ObjectAddress) -> TabPart:
    """Show the policies that apply to an object and to everything in it, with a form that attaches one."""
    path = (address.catalog, *address.levels)
    name = render_full_name(address.kind, path, codec=codec_for(page_request.ctx.services.defaults))
    on = AttachmentTarget(address.metalake, address.kind, name)
    attached = await attachments_list(page_request.ctx, on, kind=Kind.POLICY)
    columns = (
        SheetColumn(text="Policy"),
        SheetColumn(text="Attached"),
        SheetColumn(text="State"),
        SheetColumn(text="Description", hides=True, is_long=True),
    )
    rows = tuple(_row(page_request, address, attachment=each) for each in attached)
    text = display.render(path)
    form = FormView(
        action=f"{page_request.base}/policy/attach",
        button="Attach",
        fields=hidden_fields(metalake=address.metalake, kind=address.kind.word, path=text, change="attach"),
        inputs=(FormInput(name="name", label="Policy", is_required=True),),
        title="Attach a policy",
        label=f"Attach the policy to {text}",
    )
    note = "No policy that you may see applies here."
    more = f"A policy applies to every object in {text}; of the same type, the nearest one wins." if rows else ""
    return TabPart(sheets=(Sheet(title="", columns=columns, rows=rows, note=note, more=more),), forms=(form,))


def _row(page_request: PageRequest, address: ObjectAddress, *, attachment: ObjectAttachment) -> tuple[SheetCell, ...]:
    node = attachment.node
    record = cast("PolicyRecord", node.record)
    href = f"{page_request.base}/policy/{segment_of(address.metalake)}/{segment_of(node.name)}"
    state = Chip("enabled", "ok", "check") if record.enabled else Chip("disabled", "warn", "alert")
    where = "above, and inherited" if attachment.inherited else "here"
    return (
        SheetCell(text=node.name, href=href, is_name=True),
        SheetCell(text=where),
        SheetCell(chips=(state,)),
        SheetCell(text=record.comment or ""),
    )
