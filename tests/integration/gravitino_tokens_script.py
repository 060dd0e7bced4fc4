# SPDX-License-Identifier: Apache-2.0
"""The official Gravitino Python client and its virtual file system with an API token; run by an interpreter that has
the client.

Usage: gravitino_tokens_script.py URI TOKEN LOCATION. Prints one JSON object: the result of each step, or its exception.
Imports nothing of Limnos, because the released client pins its own libraries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from gravitino import GravitinoClient, NameIdentifier, gvfs
from gravitino.api.catalog import Catalog
from gravitino.api.file.fileset import Fileset
from gravitino.auth.auth_data_provider import AuthDataProvider
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.auth.default_oauth2_token_provider import DefaultOAuth2TokenProvider

URI, TOKEN, LOCATION = sys.argv[1:]
TOKENS = "iceberg/v1/oauth/tokens"
seen: dict[str, object] = {}


def see(step: str, call: Callable[[], object]) -> None:
    """Run a step and store its result, or the exception's class and message."""
    try:
        seen[step] = call()
    except Exception as error:
        seen[step] = f"{type(error).__name__}: {error}"


def client(authentication: AuthDataProvider | None) -> GravitinoClient:
    """Return a client with a form of authentication."""
    return GravitinoClient(uri=URI, metalake_name="lake", auth_data_provider=authentication)


def oauth(credential: str) -> DefaultOAuth2TokenProvider:
    """Return the client's own provider of OAuth's client credentials."""
    return DefaultOAuth2TokenProvider(uri=URI, credential=credential, scope="gravitino", path=TOKENS)


def make_fileset() -> str:
    """Create the catalog `files` with the fileset `raw.f`, whose files are below `LOCATION`."""
    admin = client(BasicAuthProvider("admin", TOKEN))
    catalog = admin.create_catalog("files", Catalog.Type.FILESET, "fileset", "", {"location": LOCATION})
    catalog.as_schemas().create_schema("raw", "", {})
    name = NameIdentifier.of("raw", "f")
    return str(catalog.as_fileset_catalog().create_fileset(name, "", Fileset.Type.MANAGED, None, {}).name())


def write_and_read(name: str, options: dict[str, str]) -> list[object]:
    """Write a file of the fileset through the virtual file system, list it and read it."""
    files = gvfs.GravitinoVirtualFileSystem(
        server_uri=URI, metalake_name="lake", options=options, skip_instance_cache=True
    )
    path = f"gvfs://fileset/files/raw/f/{name}"
    with files.open(path, "wb") as file:
        file.write(b"rows")
    listed = [entry["name"].rsplit("/", 1)[1] for entry in files.ls("gvfs://fileset/files/raw/f", detail=True)]
    with files.open(path, "rb") as file:
        return [name in listed, file.read().decode()]


see("without-credential", lambda: client(None).list_catalogs())
see("basic", lambda: "main" in client(BasicAuthProvider("admin", TOKEN)).list_catalogs())
see("basic-of-another", lambda: client(BasicAuthProvider("ana", TOKEN)).list_catalogs())
see("basic-without-token", lambda: client(BasicAuthProvider("admin", "x")).list_catalogs())
see("oauth", lambda: "main" in client(oauth(f"admin:{TOKEN}")).list_catalogs())
see("oauth-of-another", lambda: client(oauth(f"ana:{TOKEN}")).list_catalogs())
see("fileset", make_fileset)
basic = {"auth_type": "basic", "basic_username": "admin", "basic_password": TOKEN}
see("gvfs-basic", lambda: write_and_read("basic.txt", basic))
oauth2 = {"auth_type": "oauth2", "oauth2_server_uri": URI, "oauth2_credential": f"admin:{TOKEN}"}
see("gvfs-oauth", lambda: write_and_read("o.txt", {**oauth2, "oauth2_path": "gravitino", "oauth2_scope": TOKENS}))
see("gvfs-basic-of-another", lambda: write_and_read("x.txt", {**basic, "basic_username": "ana"}))
print(json.dumps(seen))
