# SPDX-License-Identifier: Apache-2.0
"""Creating and registering Iceberg tables: the privilege is checked again after the file access, also for a staged
create.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from limnos.files import allow_everything
from limnos.formats.iceberg import metadata as documents
from limnos.formats.iceberg.create import new_table
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.iceberg.registrations import table_register
from limnos.services.iceberg.tables import table_create, table_stage
from limnos.services.identity.grants import PrivilegeRequest, roles_give
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create
from tests.inprocess import LAKE, MAIN, SCHEMA, NoFiles
from tests.inprocess import new_table as request_of
from tests.services.conftest import ServiceDesk

FILE = "file:/warehouse/{catalog}/given/metadata/1.metadata.json"
USES = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)


class Meanwhile(NoFiles):
    """A fake object store that runs a callback whenever a file is read or written."""

    def __init__(self, work: Callable[[], Awaitable[object]], location: str) -> None:
        super().__init__(allow_everything())
        self.work = work
        self.data = documents.encode(
            new_table(
                uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
                location=location,
                schema=SCHEMA,
                partition_spec=None,
                write_order=None,
                properties=None,
                now_ms=1,
            )
        )

    async def read(self, location: str, properties: Mapping[str, str]) -> bytes:
        """Run the callback, then return the file."""
        await self.work()
        return self.data

    async def read_within(self, location: str, properties: Mapping[str, str], roots: Sequence[str]) -> bytes:
        """Read a file in the same way; symbolic links are not resolved."""
        return await self.read(location, properties)

    async def write(self, location: str, data: bytes, properties: Mapping[str, str], *, first: bool = False) -> None:
        """Run the callback."""
        await self.work()


@pytest.fixture
def losing(desk: ServiceDesk) -> tuple[ServiceDesk, str]:
    """A desk and a metadata file. While the file is accessed, ana loses CREATE_TABLE in `a` and the ownership of
    `a.t`.
    """
    desk.namespace("a")
    for privilege in (*USES, Privilege.CREATE_TABLE):
        desk.allow("ana", Kind.CATALOG, "main", privilege)
    desk.table("a", "t", user="ana")
    desk.run(_role(desk, "uses", USES))

    async def lose() -> None:
        await roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("of ana",), gives=False)
        await roles_give(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana", roles=("uses",))
        await owner_set(
            desk.ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t", owner_kind=Kind.USER, owner="bob"
        )

    ((catalog,),) = desk.rows("SELECT id FROM node WHERE name = 'main'")
    desk.node.services.files = Meanwhile(lose, f"file:/warehouse/{catalog}/given")
    return desk, FILE.format(catalog=catalog)


async def _role(desk: ServiceDesk, name: str, privileges: tuple[Privilege, ...]) -> None:
    privilege_request = PrivilegeRequest(
        Kind.CATALOG, "main", tuple((privilege, GrantCondition.ALLOW) for privilege in privileges)
    )
    await role_create(desk.ctx(), metalake=LAKE, name=name, properties={}, privilege_requests=(privilege_request,))


def test_create_is_refused_if_privilege_is_lost_during_write(losing: tuple[ServiceDesk, str]) -> None:
    """If the caller loses the privilege while a create writes its metadata file, the create is refused and no table is
    created.
    """
    desk, _ = losing
    with pytest.raises(PermissionDenied, match="CREATE_TABLE"):
        desk.run(table_create(desk.ctx("ana"), MAIN, namespace=("a",), request=request_of("new")))

    assert desk.rows("SELECT name FROM node WHERE kind = ? AND deleted = 0", int(Kind.TABLE)) == [("t",)]


@pytest.mark.parametrize("name, overwrite, missing", [("new", False, "CREATE_TABLE"), ("t", True, "ownership")])
def test_register_is_refused_if_privilege_is_lost_during_read(
    losing: tuple[ServiceDesk, str], name: str, overwrite: bool, missing: str
) -> None:
    """If the caller loses the privilege while a register reads the metadata file, the register of a new or existing
    table is refused.
    """
    desk, file = losing
    before = desk.rows("SELECT name, version FROM node JOIN document ON node_id = id")

    with pytest.raises(PermissionDenied, match=missing):
        desk.run(
            table_register(
                desk.ctx("ana"), MAIN, namespace=("a",), name=name, metadata_location=file, overwrite=overwrite
            )
        )

    assert desk.rows("SELECT name, version FROM node JOIN document ON node_id = id") == before


@pytest.mark.parametrize("privileges", [USES, (*USES, Privilege.MODIFY_TABLE), (*USES, Privilege.CREATE_SCHEMA)])
def test_staged_create_needs_the_create_privilege(desk: ServiceDesk, privileges: tuple[Privilege, ...]) -> None:
    """A staged create stores nothing, but needs the privilege to create tables."""
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", *privileges)

    with pytest.raises(PermissionDenied, match="CREATE_TABLE"):
        desk.run(table_stage(desk.ctx("ana"), MAIN, namespace=("a",), request=request_of("new")))


@pytest.mark.parametrize("privileges", [(), USES, (*USES, Privilege.MODIFY_TABLE)])
def test_overwrite_refusal_does_not_reveal_table_existence(
    desk: ServiceDesk, privileges: tuple[Privilege, ...]
) -> None:
    """A caller without the required privileges gets the same refusal from a register with overwrite, whether the table
    exists or not.
    """
    desk.namespace("a")
    desk.table("a", "t")
    if privileges:
        desk.allow("ana", Kind.CATALOG, "main", *privileges)

    def refusal_message(name: str) -> str:
        with pytest.raises(PermissionDenied) as refused:
            desk.run(
                table_register(
                    desk.ctx("ana"), MAIN, namespace=("a",), name=name, metadata_location="file:/x", overwrite=True
                )
            )
        return refused.value.message

    assert refusal_message("t") == refusal_message("none")
