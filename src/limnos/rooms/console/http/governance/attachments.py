# SPDX-License-Identifier: Apache-2.0
"""Lists of tags and policies, the page of each with its objects, and forms that create, attach and detach them.

The services make all access decisions.
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.attachments import check_tag_value
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.records import PolicyRecord, TagRecord
from limnos.names import display
from limnos.rooms.console.http.addresses import KINDS, ObjectAddress, part_of, segment_of
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.governance.policy_examples import (
    content_inputs,
    content_of,
    example_of,
    type_text,
    types_sheet,
)
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    Choice,
    CodeBlock,
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
    with_values,
)
from limnos.rooms.console.http.tabs import Chip, Fact
from limnos.services.governance.attachments import HOLDERS, AttachedObject, attached_objects_list, attachments_associate
from limnos.services.governance.policies import (
    PolicyContent,
    PolicyRequest,
    policies_associate,
    policy_alter,
    policy_create,
)
from limnos.services.governance.tag_values import TagValuePair, allowed_values, pairs_associate, tag_record
from limnos.services.lookup.metalake_objects import (
    may_create,
    metalake_object_create,
    metalake_object_load,
    metalake_objects_list,
)
from limnos.services.lookup.securables import AttachmentTarget, render_full_name
from limnos.services.request.name_codecs import codec_for
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope

SHOWN: Final = 500
_PLURAL: Final = {Kind.TAG: "tags", Kind.POLICY: "policies"}
_ICONS: Final = {Kind.TAG: "tag", Kind.POLICY: "lock"}
_INTROS: Final = {
    Kind.TAG: "Labels for objects and columns. An object has the tags of its containers, too.",
    Kind.POLICY: "Rules that are attached to objects. Maintenance policies define how the server maintains tables.",
}
_OBJECTS: Final = (
    SheetColumn(text="Object", is_code=True),
    SheetColumn(text="Kind"),
    SheetColumn(text="Action"),
)


async def list_page(page_request: PageRequest, *, kind: Kind) -> Response:
    """Show the tags or policies that are visible to the caller, with a form if the caller may create one."""
    plural = _PLURAL[kind]
    frame = await frame_of(page_request, plural.capitalize(), section=plural)
    scope = RequestScope(frame.metalake)
    nodes, is_maker = await page_request.ctx.read(
        scope, lambda view: (metalake_objects_list(view, kind), may_create(view, kind))
    )
    second = "Values" if kind is Kind.TAG else "Type"
    columns = (
        SheetColumn(text="Name"),
        SheetColumn(text=second),
        SheetColumn(text="Description", hides=True, is_long=True),
        SheetColumn(text="Created", hides=True),
    )
    rows = tuple(_row(page_request, kind, metalake=frame.metalake, node=node) for node in nodes[:SHOWN])
    page = SheetPage(
        frame=frame,
        title=plural.capitalize(),
        intro=_INTROS[kind],
        sheets=(
            Sheet(
                title="",
                columns=columns,
                rows=rows,
                note=f"There are no {plural} that you may see.",
                more=f"The first {SHOWN} of {len(nodes)} are shown." if len(nodes) > SHOWN else "",
            ),
            *((types_sheet(page_request.base, metalake=frame.metalake),) if is_maker and kind is Kind.POLICY else ()),
        ),
        forms=(
            _creation(
                page_request, kind, metalake=frame.metalake, policy_type=page_request.request.query("type") or ""
            ),
        )
        if is_maker
        else (),
    )
    return sheet_response(page_request, page)


def _row(page_request: PageRequest, kind: Kind, *, metalake: str, node: Node) -> tuple[SheetCell, ...]:
    href = _address(page_request, kind, metalake=metalake, name=node.name)
    if kind is Kind.TAG:
        second = SheetCell(text=_values_text(cast("TagRecord", node.record)))
    else:
        record = cast("PolicyRecord", node.record)
        second = SheetCell(
            text=type_text(record.policy_type), chips=() if record.enabled else (Chip("disabled", "warn"),)
        )
    comment = cast("TagRecord | PolicyRecord", node.record).comment or ""
    return (
        SheetCell(text=node.name, href=href, is_name=True),
        second,
        SheetCell(text=comment),
        SheetCell(at_ms=node.created_at),
    )


def _address(page_request: PageRequest, kind: Kind, *, metalake: str, name: str) -> str:
    return f"{page_request.base}/{kind.word}/{segment_of(metalake)}/{segment_of(name)}"


def _values_text(record: TagRecord) -> str:
    values = allowed_values(record)
    return "any" if values is None else ", ".join(values) or "none"


def _creation(page_request: PageRequest, kind: Kind, *, metalake: str, policy_type: str = "") -> FormView:
    inputs = [FormInput(name="name", label="Name", is_required=True), FormInput(name="comment", label="Description")]
    if kind is Kind.TAG:
        inputs.append(FormInput(name="values", label="Allowed values, separated by commas"))
    else:
        example = example_of(policy_type)
        inputs += content_inputs(example)
        return FormView(
            action=f"{page_request.base}/policies/create",
            button="Create",
            fields=hidden_fields(metalake=metalake, type=example.policy_type),
            inputs=tuple(inputs),
            title=f"Create a policy of {type_text(example.policy_type)}",
            label="Create the policy",
        )
    return FormView(
        action=f"{page_request.base}/{_PLURAL[kind]}/create",
        button="Create",
        fields=hidden_fields(metalake=metalake),
        inputs=tuple(inputs),
        title=f"Create a {kind.word}",
    )


async def object_page(page_request: PageRequest, *, kind: Kind) -> Response:
    """Show a tag or policy with the objects that have it, and forms to attach and detach it."""
    metalake, name = (part_of(each) for each in page_request.request.params)
    ctx, scope = page_request.ctx, RequestScope(metalake)
    node = await ctx.read(scope, lambda view: metalake_object_load(view, kind, name=name))
    value = page_request.request.query("value") or None
    objects = await attached_objects_list(ctx, metalake=metalake, kind=kind, name=name, value=value)
    plural = _PLURAL[kind]
    frame = await frame_of(page_request, name, metalake=metalake, section=plural)
    crumb = Link(plural.capitalize(), f"{page_request.base}/{plural}?{urlencode({'metalake': metalake})}")
    rows = tuple(_object_row(page_request, kind, metalake=metalake, name=name, on=each) for each in objects[:SHOWN])
    page = SheetPage(
        frame=frame,
        title=name,
        icon=_ICONS[kind],
        intro=cast("TagRecord | PolicyRecord", node.record).comment or "",
        crumbs=(crumb,),
        facts=_facts(kind, node),
        blocks=_blocks(kind, node),
        chips=_chips(kind, node),
        sheets=(
            Sheet(
                title="Objects",
                columns=_OBJECTS,
                rows=rows,
                note=f"No object that you may see has this {kind.word}.",
                more=f"The first {SHOWN} of {len(objects)} are shown." if len(objects) > SHOWN else "",
            ),
        ),
        forms=_forms(page_request, kind, metalake=metalake, node=node),
    )
    return sheet_response(page_request, page)


def _chips(kind: Kind, node: Node) -> tuple[Chip, ...]:
    if kind is Kind.TAG:
        return (Chip("tag"),)
    record = cast("PolicyRecord", node.record)
    state = Chip("enabled", "ok", "check") if record.enabled else Chip("disabled", "warn", "alert")
    return Chip("policy"), state


def _facts(kind: Kind, node: Node) -> tuple[Fact, ...]:
    if kind is Kind.TAG:
        values_fact = Fact(label="Allowed values", text=_values_text(cast("TagRecord", node.record)))
    else:
        values_fact = Fact(label="Type", text=type_text(cast("PolicyRecord", node.record).policy_type))
    return values_fact, Fact(label="Created", text=f"by {node.created_by}", at_ms=node.created_at)


def _blocks(kind: Kind, node: Node) -> tuple[CodeBlock, ...]:
    if kind is Kind.TAG:
        return ()
    return (CodeBlock("Content", msgspec.json.format(cast("PolicyRecord", node.record).content, indent=2)),)


def _object_row(
    page_request: PageRequest, kind: Kind, *, metalake: str, name: str, on: AttachedObject
) -> tuple[SheetCell, ...]:
    """Return the row of an object: a link to its page, its kind, and a button that detaches the tag or policy."""
    text = display.render(on.path)
    table = on.path[:-1] if on.kind is Kind.COLUMN else on.path
    word = "table" if on.kind is Kind.COLUMN else on.kind.word
    href = ""
    if word in KINDS:
        href = page_request.base + ObjectAddress(KINDS[word], metalake, table[0], table[1:]).path
    detach = FormView(
        action=f"{page_request.base}/{kind.word}/attach",
        button="Detach",
        fields=hidden_fields(metalake=metalake, name=name, kind=on.kind.word, path=text, change="detach"),
        label=f"Detach from {text}",
    )
    return (
        SheetCell(text=text, href=href, is_name=True),
        SheetCell(text=on.kind.word.replace("_", " ")),
        SheetCell(form=detach),
    )


def _attachment(page_request: PageRequest, kind: Kind, *, metalake: str, name: str) -> FormView:
    kinds = tuple(Choice(each.word, each.word.replace("_", " "), is_chosen=each is Kind.TABLE) for each in HOLDERS)
    inputs = [
        FormInput(name="path", label="Object, as main.raw.trips", is_required=True),
        FormInput(name="kind", label="Kind", choices=kinds),
    ]
    if kind is Kind.TAG:
        inputs.append(FormInput(name="value", label="Value"))
    return FormView(
        action=f"{page_request.base}/{kind.word}/attach",
        button="Attach",
        fields=hidden_fields(metalake=metalake, name=name, change="attach"),
        inputs=tuple(inputs),
        title="Attach to an object",
    )


def _forms(page_request: PageRequest, kind: Kind, *, metalake: str, node: Node) -> tuple[FormView, ...]:
    attach = _attachment(page_request, kind, metalake=metalake, name=node.name)
    if kind is Kind.TAG:
        return (attach,)
    is_enabled = cast("PolicyRecord", node.record).enabled
    switch = FormView(
        action=f"{page_request.base}/policy/enable",
        button="Disable" if is_enabled else "Enable",
        fields=hidden_fields(metalake=metalake, name=node.name, enabled="no" if is_enabled else "yes"),
        title="State",
    )
    record = cast("PolicyRecord", node.record)
    content = msgspec.json.decode(record.content, type=dict[str, object])
    edit = FormView(
        action=f"{page_request.base}/policy/content",
        button="Save",
        fields=hidden_fields(metalake=metalake, name=node.name, type=record.policy_type),
        inputs=(
            FormInput(name="comment", label="Description", value=record.comment or ""),
            *content_inputs(example_of(record.policy_type), content=content),
        ),
        title="Change the policy",
    )
    return attach, edit, switch


async def create(page_request: PageRequest, *, kind: Kind) -> Response:
    """Create a tag or policy, which the caller then owns, and redirect to its page."""
    fields = await page_request.form()
    metalake, name, comment = (fields.get(each, "").strip() for each in ("metalake", "name", "comment"))
    form = _creation(page_request, kind, metalake=metalake, policy_type=fields.get("type", ""))
    page_request.retry = with_values(form, fields)
    if not metalake or not name:
        raise BadRequest(f"Give the {kind.word} a name")
    ctx = page_request.ctx
    if kind is Kind.TAG:
        values = [each.strip() for each in fields.get("values", "").split(",") if each.strip()]
        record = tag_record(comment or None, {}, allowed_values=values or None)
        await metalake_object_create(ctx, metalake=metalake, kind=kind, name=name, record=record)
    else:
        request = PolicyRequest(fields.get("type", ""), content_of(fields.get("type", ""), fields), comment or None)
        await policy_create(ctx, metalake=metalake, name=name, request=request)
    return _back(page_request, kind, metalake=metalake, name=name, done=f"The {kind.word} {name} is made")


async def attach(page_request: PageRequest, *, kind: Kind) -> Response:
    """Attach a tag or policy to an object, or detach it. Redirect to the page of the tag or policy, or to the form's
    page `next`.
    """
    fields = await page_request.form()
    metalake, name, text = (fields.get(each, "").strip() for each in ("metalake", "name", "path"))
    change = fields.get("change", "")
    if change == "attach":
        page_request.retry = with_values(_attachment(page_request, kind, metalake=metalake, name=name), fields)
    if change not in ("attach", "detach") or not metalake or not name or not text:
        raise BadRequest(f"Name the object that gets the {kind.word}")
    path, word = display.parse(text), fields.get("kind", "")
    if column := fields.get("column", ""):
        path, word = (*path, column), Kind.COLUMN.word
    on, text = _target_of(page_request, metalake, word=word, path=path), display.render(path)
    adds, removes = ((name,), ()) if change == "attach" else ((), (name,))
    ctx, value = page_request.ctx, fields.get("value", "").strip()
    if kind is Kind.POLICY:
        await policies_associate(ctx, on, adds=adds, removes=removes)
    elif value:
        pair = TagValuePair(name, check_tag_value(value))
        await pairs_associate(ctx, on, adds=(pair,) if adds else (), removes=(pair,) if removes else ())
    else:
        await attachments_associate(ctx, on, kind=Kind.TAG, adds=adds, removes=removes)
    notice = f"{text} {'has' if change == 'attach' else 'no longer has'} the {kind.word} {name}"
    if fields.get("next"):
        return redirect(f"{page_request.site.path_below(fields['next'])}?{urlencode({'done': notice})}")
    return _back(page_request, kind, metalake=metalake, name=name, done=notice)


def _target_of(page_request: PageRequest, metalake: str, *, word: str, path: tuple[str, ...]) -> AttachmentTarget:
    """Return the object that a form specifies. Raises BadRequest for an unsuitable kind or a path that is too short."""
    kind = next((each for each in HOLDERS if each.word == word), None)
    least = {Kind.CATALOG: 1, Kind.NAMESPACE: 2, Kind.COLUMN: 3}
    if kind is None or len(path) < least.get(kind, 2) or (kind is Kind.CATALOG and len(path) > 1):
        raise BadRequest("Give the object's kind, and its path as main.raw.trips")
    return AttachmentTarget(
        metalake, kind, render_full_name(kind, path, codec=codec_for(page_request.ctx.services.defaults))
    )


async def change_policy(page_request: PageRequest) -> Response:
    """Change the description and content of a policy, and redirect to its page."""
    fields = await page_request.form()
    metalake, name, policy_type = (fields.get(each, "") for each in ("metalake", "name", "type"))
    comment = fields.get("comment", "").strip()
    if not metalake or not name:
        raise BadRequest("Name the policy")
    content = PolicyContent(policy_type, content_of(policy_type, fields))
    edits = PropertyEdits(comment=comment or None, clears_comment=not comment)
    await policy_alter(page_request.ctx, metalake=metalake, name=name, edits=edits, content=content)
    return _back(page_request, Kind.POLICY, metalake=metalake, name=name, done="The policy is saved")


async def enable(page_request: PageRequest) -> Response:
    """Enable or disable a policy, and redirect to its page."""
    fields = await page_request.form()
    metalake, name, enabled = (fields.get(each, "") for each in ("metalake", "name", "enabled"))
    if not metalake or not name or enabled not in ("yes", "no"):
        raise BadRequest("Name the policy")
    await policy_alter(page_request.ctx, metalake=metalake, name=name, edits=PropertyEdits(), enabled=enabled == "yes")
    notice = f"The policy is {'enabled' if enabled == 'yes' else 'disabled'}"
    return _back(page_request, Kind.POLICY, metalake=metalake, name=name, done=notice)


def _back(page_request: PageRequest, kind: Kind, *, metalake: str, name: str, done: str) -> Response:
    return redirect(f"{_address(page_request, kind, metalake=metalake, name=name)}?{urlencode({'done': done})}")


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/tags",
        handler=partial(list_page, kind=Kind.TAG),
        operation="tags-page",
        query=("metalake", "done"),
    ),
    ConsoleRoute(
        method="GET",
        path="/tag/{m}/{name}",
        handler=partial(object_page, kind=Kind.TAG),
        operation="tag-page",
        query=("value", "done"),
    ),
    ConsoleRoute(
        method="POST", path="/tags/create", handler=partial(create, kind=Kind.TAG), operation="create-tag-from-console"
    ),
    ConsoleRoute(
        method="POST", path="/tag/attach", handler=partial(attach, kind=Kind.TAG), operation="attach-tag-from-console"
    ),
    ConsoleRoute(
        method="GET",
        path="/policies",
        handler=partial(list_page, kind=Kind.POLICY),
        operation="policies-page",
        query=("metalake", "type", "done"),
    ),
    ConsoleRoute(
        method="GET",
        path="/policy/{m}/{name}",
        handler=partial(object_page, kind=Kind.POLICY),
        operation="policy-page",
        query=("done",),
    ),
    ConsoleRoute(
        method="POST",
        path="/policies/create",
        handler=partial(create, kind=Kind.POLICY),
        operation="create-policy-from-console",
    ),
    ConsoleRoute(method="POST", path="/policy/content", handler=change_policy, operation="change-policy-from-console"),
    ConsoleRoute(
        method="POST",
        path="/policy/attach",
        handler=partial(attach, kind=Kind.POLICY),
        operation="attach-policy-from-console",
    ),
    ConsoleRoute(method="POST", path="/policy/enable", handler=enable, operation="enable-policy-from-console"),
)
