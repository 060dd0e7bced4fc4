# SPDX-License-Identifier: Apache-2.0
"""The official Gravitino Python client and its virtual file system with a token that expires while they are open; run
by an interpreter that has the client.

Usage: expired_tokens_script.py URI TOKEN LOCATION SECONDS. Prints one JSON object: the result of each step, or its
exception. Imports nothing of Limnos, because the released client pins its own libraries.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable

from gravitino import GravitinoClient, NameIdentifier, gvfs
from gravitino.api.catalog import Catalog
from gravitino.api.file.fileset import Fileset
from gravitino.auth.auth_data_provider import AuthDataProvider
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.auth.default_oauth2_token_provider import DefaultOAuth2TokenProvider

URI, TOKEN, LOCATION, SECONDS = sys.argv[1:]
TOKENS = "iceberg/v1/oauth/tokens"
seen: dict[str, object] = {}


def see(step: str, call: Callable[[], object]) -> None:
    """Run a step and store its result, or the exception's class and message."""
    try:
        seen[step] = call()
    except Exception as error:
        seen[step] = f"{type(error).__name__}: {error}"


def short_token() -> str:
    """Return a token of the administrator that expires after `SECONDS`."""
    request = urllib.request.Request(
        f"{URI}/api/limnos/v1/tokens",
        json.dumps({"expires_in_s": int(SECONDS)}).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["token"])


def client(authentication: AuthDataProvider) -> GravitinoClient:
    """Return a client with a form of authentication."""
    return GravitinoClient(uri=URI, metalake_name="lake", auth_data_provider=authentication)


def make_fileset() -> None:
    """Create the catalog `files` with the fileset `raw.f`, whose files are below `LOCATION`."""
    admin = client(BasicAuthProvider("admin", TOKEN))
    catalog = admin.create_catalog("files", Catalog.Type.FILESET, "fileset", "", {"location": LOCATION})
    catalog.as_schemas().create_schema("raw", "", {})
    name = NameIdentifier.of("raw", "f")
    catalog.as_fileset_catalog().create_fileset(name, "", Fileset.Type.MANAGED, None, {})


def file_system(options: dict[str, str]) -> Callable[[], object]:
    """Return a function that counts the files of the fileset, by one instance of the virtual file system."""
    files = gvfs.GravitinoVirtualFileSystem(
        server_uri=URI, metalake_name="lake", options=options, skip_instance_cache=True
    )
    return lambda: len(files.ls("gvfs://fileset/files/raw/f", detail=True))


make_fileset()
token = short_token()
over = time.monotonic() + int(SECONDS) + 1
basic = client(BasicAuthProvider("admin", token))
oauth = client(DefaultOAuth2TokenProvider(uri=URI, credential=f"admin:{token}", scope="gravitino", path=TOKENS))
files = {
    "gvfs-basic": file_system({"auth_type": "basic", "basic_username": "admin", "basic_password": token}),
    "gvfs-oauth": file_system(
        {
            "auth_type": "oauth2",
            "oauth2_server_uri": URI,
            "oauth2_credential": f"admin:{token}",
            "oauth2_path": "gravitino",
            "oauth2_scope": TOKENS,
        }
    ),
}
for when in ("before", "after"):
    see(f"basic {when}", lambda: "main" in basic.list_catalogs())
    see(f"oauth {when}", lambda: "main" in oauth.list_catalogs())
    for name, count in files.items():
        see(f"{name} {when}", count)
    time.sleep(max(0.0, over - time.monotonic()))
print(json.dumps(seen))
