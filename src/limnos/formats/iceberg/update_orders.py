# SPDX-License-Identifier: Apache-2.0
"""Updates of sort orders: add and make default.

Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg import sorting
from limnos.formats.iceberg.draft import MetadataDraft, resolve_added_id
from limnos.formats.iceberg.json_types import Json, integer_at, object_at
from limnos.model.errors import BadRequest


def add_sort_order(draft: MetadataDraft, update: Json) -> None:
    """Add a sort order, or reuse an existing one that sorts in the same way.

    In later updates of the request, -1 refers to it. The unsorted order always has id 0; others count from 1.
    """
    order = object_at(update, "sort-order", where="add-sort-order")
    fields = sorting.order_fields(order)
    orders, content = draft.rows("sort-orders"), sorting.content_of(fields)
    equal_order = orders.find_same(content, lambda row: sorting.content_of(sorting.stored_fields(row)))
    if equal_order is not None:
        draft.added_order_id = integer_at(equal_order, "order-id", where="add-sort-order")
        return
    sorting.check_binding(fields, draft.current_columns("sort order"))
    order_id = orders.next_id(sorting.FIRST_SORTED_ID) if fields else sorting.UNSORTED_ID
    orders.append({**order, "order-id": order_id, "fields": fields}, content=content)
    draft.added_order_id = order_id


def set_default_sort_order(draft: MetadataDraft, update: Json) -> None:
    """Make a sort order the default for new data; -1 is the last order added in this request.

    Raises BadRequest for an unknown order.
    """
    order_id = integer_at(update, "sort-order-id", where="set-default-sort-order")
    order_id = resolve_added_id(order_id, draft.added_order_id, what="sort order", update="add-sort-order")
    if draft.rows("sort-orders").find(order_id) is None:
        raise BadRequest(f"Cannot set default sort order to unknown sort order: {order_id}")
    draft.doc["default-sort-order-id"] = order_id
