# SPDX-License-Identifier: Apache-2.0
"""The types of the items of bulk jobs."""

from __future__ import annotations

from limnos.http.admin.catalog.bulk_access import (
    AssignItem,
    GrantItem,
    MembersItem,
    OwnerItem,
    PolicyItem,
    PrincipalItem,
    TagCreateItem,
    TagItem,
)
from limnos.http.admin.catalog.bulk_objects import (
    DropItem,
    FilesetItem,
    LanceItem,
    ModelItem,
    ModelVersionItem,
    NamespaceItem,
    PropertiesItem,
    RegisterItem,
)

AnyItem = (
    NamespaceItem
    | RegisterItem
    | LanceItem
    | FilesetItem
    | ModelItem
    | ModelVersionItem
    | PropertiesItem
    | DropItem
    | TagCreateItem
    | PrincipalItem
    | MembersItem
    | AssignItem
    | TagItem
    | PolicyItem
    | GrantItem
    | OwnerItem
)
