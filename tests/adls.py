# SPDX-License-Identifier: Apache-2.0
"""An Azure-like object store for tests, with sign-in and user delegation keys, over TLS in this process.

It implements the part of the Blob API that whole files need. Each shared access signature is restricted to its signed
directory and permissions. The server verifies a signature by signing its fields again with the directory that the
request names. The account's key, and its program, may do everything.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import adlfs  # type: ignore[import-untyped]  # noqa: F401 - takes seconds, which no request of a test should wait for
import aiohttp.connector
import azure.identity.aio
import azure.storage.filedatalake  # noqa: F401 - as above

from tests.authority import Authority

CONTAINER = "lake"
ACCOUNT = "tables"
PLACE = f"abfs://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"
TENANT = "11111111-2222-3333-4444-555555555555"
PROGRAM, SECRET = "66666666-7777-8888-9999-000000000000", "the secret of a program"
_SIGNED_BY_KEY = [
    "sp",
    "st",
    "se",
    "@",
    "si",
    "sip",
    "spr",
    "sv",
    "sr",
    "snapshot",
    "ses",
    "rscc",
    "rscd",
    "rsce",
    "rscl",
    "rsct",
]
_SIGNED_BY_LENT = [
    "sp",
    "st",
    "se",
    "@",
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "saoid",
    "suoid",
    "scid",
    "skdutid",
    "sduoid",
    "sip",
    "spr",
    "sv",
    "sr",
    "snapshot",
    "ses",
    "srh",
    "srq",
    "rscc",
    "rscd",
    "rsce",
    "rscl",
    "rsct",
]
"""The signed fields, one per line; @ is the directory."""


@dataclass(kw_only=True)
class AdlsServer:
    """The server: host, objects, sign-ins, issued signatures and refusals."""

    host: str = ""
    authority: Path = Path()
    files: dict[str, bytes] = field(default_factory=dict)
    blocks: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Uncommitted blocks of files, by block id."""
    refused: list[str] = field(default_factory=list)
    lent: int = 0
    away: int = 0
    """Status of all answers of the sign-in and key endpoints, if not 0."""
    key: str = base64.b64encode(b"the key of an account, 64 bytes long, as those of Azure's are...").decode()
    lent_key: str = base64.b64encode(b"a key that is lent to a program").decode()

    @property
    def by_key(self) -> dict[str, str]:
        """Catalog properties that access the store with the account's key."""
        return {"adls.account-host": self.host, "adls.account-key": self.key, "adls.vended-credentials-enabled": "true"}

    @property
    def by_program(self) -> dict[str, str]:
        """Catalog properties that access the store as an application of the account."""
        credentials = {"adls.tenant-id": TENANT, "adls.client-id": PROGRAM, "adls.client-secret": SECRET}
        return {"adls.account-host": self.host, "adls.vended-credentials-enabled": "true", **credentials}

    def may(self, words: dict[str, str], permissions: str, path: str) -> bool:
        """Return whether a signature permits one of some permissions on a path."""
        depth = int(words["sdd"]) if words.get("sr") == "d" else 0
        parts = path.split("/")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        permitted = (
            0 < depth <= len(parts) - (permissions == "l")  # a prefix without a slash lists siblings, too
            and self._signs(words, "/".join(parts[:depth]))
            and words["st"] <= now < words["se"]
            and bool(set(permissions) & set(words["sp"]))
        )
        if not permitted:
            self.refused.append(f"{permissions} {path}")
        return permitted

    def _signs(self, words: dict[str, str], directory: str) -> bool:
        place = {"@": f"/blob/{ACCOUNT}/{CONTAINER}/{directory}"}
        names, key = (_SIGNED_BY_LENT, self.lent_key) if "skoid" in words else (_SIGNED_BY_KEY, self.key)
        signed_text = "\n".join((place | words).get(name, "") for name in names)
        mark = hmac.new(base64.b64decode(key), signed_text.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(base64.b64encode(mark).decode(), words.get("sig", ""))


@contextmanager
def adls(folder: Path) -> Iterator[AdlsServer]:
    """Serve a store with a certificate of its own authority, in a folder."""
    authority = Authority(folder)
    authority.give(folder / "cert.pem", folder / "key.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    # aiohttp creates its context at import, and reads no environment settings afterwards.
    aiohttp.connector._SSL_CONTEXT_VERIFIED.load_verify_locations(authority.file)  # type: ignore[union-attr]
    store = AdlsServer(authority=authority.file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.host = f"localhost:{server.server_address[1]}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    store: AdlsServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send an answer. Underscores in header names become hyphens; a HEAD request gets no body."""
        self.send_response(status)
        all_headers = {"content_length": str(len(body)), "content_type": "application/octet-stream"} | headers
        for name, value in all_headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @property
    def query(self) -> dict[str, str]:
        """The query parameters, each once."""
        return {key: values[0] for key, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()}

    @property
    def place(self) -> str:
        """The path in the container, or the prefix of a list."""
        path = unquote(urlsplit(self.path).path).removeprefix(f"/{CONTAINER}").lstrip("/")
        return self.query.get("prefix", "") if self.query.get("comp") == "list" else path

    def is_refused(self, permissions: str) -> bool:
        """Refuse requests that the signature does not permit, and callers without a signature or the account's key."""
        authorization = self.headers.get("authorization", "")
        words = self.query
        own = authorization.startswith(f"SharedKey {ACCOUNT}:") or authorization == "Bearer own"
        if own or ("sig" in words and self.store.may(words, permissions, self.place)):
            return False
        self.answer(403, x_ms_error_code="AuthorizationPermissionMismatch")
        return True

    def body(self) -> bytes:
        """Read the whole body."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def do_POST(self) -> None:
        body = self.body().decode()
        if self.store.away:
            return self.answer(self.store.away, b"{}", content_type="application/json")
        if self.path.endswith("/oauth2/v2.0/token"):
            fields = {key: values[0] for key, values in parse_qs(body).items()}
            if (fields["client_id"], fields["client_secret"]) != (PROGRAM, SECRET):
                return self.answer(401, b'{"error": "invalid_client"}', content_type="application/json")
            token = {"access_token": "own", "token_type": "Bearer", "expires_in": 3600}
            return self.answer(200, json.dumps(token).encode(), content_type="application/json")
        assert self.query == {"restype": "service", "comp": "userdelegationkey"}, self.path
        assert self.headers["authorization"] == "Bearer own"
        self.store.lent += 1
        words = {
            "SignedOid": PROGRAM,
            "SignedTid": TENANT,
            "SignedStart": _between(body, "Start"),
            "SignedExpiry": _between(body, "Expiry"),
            "SignedService": "b",
            "SignedVersion": self.headers["x-ms-version"],
            "Value": self.store.lent_key,
        }
        told_back = "".join(f"<{name}>{value}</{name}>" for name, value in words.items())
        return self.answer(
            200, f"<UserDelegationKey>{told_back}</UserDelegationKey>".encode(), content_type="application/xml"
        )

    def do_PUT(self) -> None:
        data = self.body()
        if self.is_refused("cw"):
            return None
        if self.query.get("comp") == "block":
            self.store.blocks[self.place, self.query["blockid"]] = data
            return self.answer(201)
        if self.query.get("comp") == "blocklist":
            names = re.findall("<(?:Latest|Uncommitted)>([^<]+)<", data.decode())
            data = b"".join(self.store.blocks.pop((self.place, name)) for name in names)
        else:
            assert self.headers["x-ms-blob-type"] == "BlockBlob"
        if self.place in self.store.files and self.headers.get("if-none-match") == "*":
            return self.answer(409, x_ms_error_code="BlobAlreadyExists")
        self.store.files[self.place] = data
        return self.answer(201, **_about(data))

    def do_GET(self) -> None:
        if self.path.endswith("/.well-known/openid-configuration"):
            base = f"https://{self.store.host}/{TENANT}"
            document = {
                "issuer": f"{base}/v2.0",
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/oauth2/v2.0/token",
            }
            return self.answer(200, json.dumps(document).encode(), content_type="application/json")
        if self.query.get("comp") == "list":
            return None if self.is_refused("l") else self.answer(200, self.listed(), content_type="application/xml")
        if self.is_refused("r"):
            return None
        data = self.store.files.get(self.place)
        if data is None:
            return self.answer(404, x_ms_error_code="BlobNotFound")
        first, _, last = (
            (self.headers.get("x-ms-range") or self.headers.get("range") or "").removeprefix("bytes=").partition("-")
        )
        if self.command == "HEAD" or not first:
            return self.answer(200, data, **_about(data))
        part = data[int(first) : int(last) + 1 if last else None]
        if not part:
            return self.answer(416, x_ms_error_code="InvalidRange")
        return self.answer(
            206, part, **_about(data), content_range=f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        )

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        if not self.is_refused("d"):
            self.answer(
                202 if self.store.files.pop(self.place, None) is not None else 404, x_ms_error_code="BlobNotFound"
            )

    def listed(self) -> bytes:
        """List names below a prefix, and common prefixes up to the delimiter."""
        prefix, sign = self.place, self.query.get("delimiter", "")
        names = [each for each in sorted(self.store.files) if each.startswith(prefix)]
        folded = sorted(
            {each[: each.index(sign, len(prefix)) + 1] for each in names if sign and sign in each[len(prefix) :]}
        )
        entries_xml = "".join(
            f"<Blob><Name>{escape(each)}</Name><Properties><Content-Length>{len(self.store.files[each])}</Content-Length><Last-Modified>Thu,"
            " 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>e</Etag><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for each in names
            if not sign or sign not in each[len(prefix) :]
        )
        entries_xml += "".join(f"<BlobPrefix><Name>{escape(each)}</Name></BlobPrefix>" for each in folded)
        return (
            "<?xml version='1.0'?><EnumerationResults"
            f" ContainerName='{CONTAINER}'><Blobs>{entries_xml}</Blobs><NextMarker/></EnumerationResults>".encode()
        )


def _about(data: bytes) -> dict[str, str]:
    """Return the properties of an object."""
    return {
        "etag": '"e"',
        "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        "x_ms_blob_type": "BlockBlob",
        "x_ms_blob_content_length": str(len(data)),
        "x_ms_creation_time": "Thu, 01 Jan 2026 00:00:00 GMT",
    }


def _between(body: str, name: str) -> str:
    return body.partition(f"<{name}>")[2].partition(f"</{name}>")[0]
