# SPDX-License-Identifier: Apache-2.0
"""Every way of access to the rows of a Lance table, tried by a user without the right, with a part of it, and with all
of it.

May import the clients. Each refusal must name the missing right, and each access succeeds with it; SQL++ cannot access
Lance tables, and its error must say so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import lance
import lancedb
from lance_namespace.errors import LanceNamespaceError

from conformance.lance_spark.embeddings import DOCS, PATH, SIZE
from limnos.client import Client
from limnos.spark import session, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LIMNOS = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")
SQL = "limnos sql"
GRAVITINO = """
import sys
from gravitino import GravitinoClient, NameIdentifier
from gravitino.auth.basic_auth_provider import BasicAuthProvider
lake = GravitinoClient(uri=sys.argv[1], metalake_name="lake", auth_data_provider=BasicAuthProvider(sys.argv[2], "x"))
print([each.name() for each in lake.load_catalog("lance").as_table_catalog().load_table(NameIdentifier.of("ml:text", "docs")).columns()])
"""
NONE, PART, WHOLE = "no right", "may use the catalog and its schemas", "may read"
WHY = {NONE: re.compile("needs USE_CATALOG"), PART: re.compile("needs SELECT_TABLE")}
NO_DOOR = re.compile(r"ASX1063.*statements read only the catalog main|not authorized.*needs USE_CATALOG on main")


def doors(uri: str, *, token: str, user: str, spark: SparkSession) -> dict[str, Callable[[], object]]:
    """Return every way of access to the table, as a user."""
    client = Client(uri, token=token)
    remote = lancedb.connect("db://lance", api_key=token, host_override=f"{uri}/lance")

    def limnos(*words: str) -> object:
        return _run_command([*LIMNOS, *words, "--uri", uri], {**os.environ, "LIMNOS_TOKEN": token})

    def gravitino() -> object:
        from conformance.gravitino.client import interpreter

        return _run_command([str(interpreter()), "-c", GRAVITINO, uri, user], dict(os.environ))

    def view() -> object:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW docs USING `limnos.lance` OPTIONS (path '{DOCS}', columns 'id')")
        return spark.sql("SELECT count(*) FROM docs").collect()

    def searched() -> object:
        docs = remote.open_table(PATH[-1], namespace_path=PATH[1:-1])
        return docs.search([1.0] * SIZE, vector_column_name="vector").limit(1).to_list()[0]["text"]

    return {
        "Spark": lambda: table(spark, DOCS, columns=["id"]).count(),
        "Spark SQL": view,
        "pylance": lambda: lance.dataset(namespace_client=client.lance.namespace(), table_id=PATH).count_rows(),
        "lancedb, namespace": lambda: (
            client.lance.connect().open_table(PATH[-1], namespace_path=PATH[:-1]).count_rows()
        ),
        "lancedb, remote": searched,
        "limnos.client": lambda: client.lance.dataset(DOCS).count_rows(),
        "Gravitino's client": gravitino,
        "limnos describe": lambda: limnos("describe", DOCS),
        SQL: lambda: limnos("sql", "-c", f"SELECT VALUE d FROM {DOCS} AS d LIMIT 1;"),
    }


def _run_command(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def knock(uri: str, admin: Client) -> list[str]:
    """Try access without rights, with a part of them, and with all; print the answers, and return the wrong ones."""
    admin.users.add("eve")
    token = admin.tokens.create(user="eve", name="doors").token
    spark = session(uri, token=token)
    wrong: list[str] = []
    for rights in (NONE, PART, WHOLE):
        if rights != NONE:
            role, granted = ("uses", ["use_catalog", "use_schema"]) if rights == PART else ("reads", ["select_table"])
            admin.roles.create(role)
            admin.roles.allow(role, granted, on="lance", kind="catalog")
            admin.roles.grant_to_user("eve", [role])
        print(f"{rights}:")
        for way, ask in doors(uri, token=token, user="eve", spark=spark).items():
            is_right, answer = _try_access(ask, way=way, rights=rights)
            print(f"  {'' if is_right else 'WRONG '}{way:20} {' '.join(answer.split())[:300]}", flush=True)
            wrong += [] if is_right else [f"{way} ({rights})"]
    return wrong


def _try_access(ask: Callable[[], object], *, way: str, rights: str) -> tuple[bool, str]:
    """Try one way of access; returns whether it behaved as expected, and the answer."""
    try:
        return rights == WHOLE and way != SQL, f"open: {ask()}"
    except (Exception, LanceNamespaceError) as error:
        text = str(error)
        why = NO_DOOR if way == SQL else WHY.get(rights)
        answer = next((line for line in text.splitlines() if why is not None and why.search(line)), text)
        return why is not None and why.search(text) is not None, answer
