# SPDX-License-Identifier: Apache-2.0
"""A Google-like object store with its token service in this process, which enforces tokens' access boundaries.

It implements the part of the JSON API that whole files need. Permissions of a token are computed from its boundary:
roles, and conditions on the object's name and on a list's prefix. The account's own token may do everything.
"""

from __future__ import annotations

import json
import re
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import gcsfs.core  # type: ignore[import-untyped]  # noqa: F401 - takes seconds, which no request of a test should wait for
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

BUCKET = "lake"
EMAIL = "tables@project.iam.example"
_ROLES = {
    "inRole:roles/storage.objectViewer": {"get", "list"},
    "inRole:roles/storage.legacyObjectReader": {"get"},
    "inRole:roles/storage.legacyBucketWriter": {"create", "delete", "list"},
}
_NAMED = re.compile(r"resource\.name\.startsWith\('([^']*)'\)")
_LISTED = re.compile(r"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\('([^']*)'\)")


@dataclass(kw_only=True)
class GcsServer:
    """The server: address, objects, issued tokens with their boundaries, and refusals."""

    uri: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[str, list[dict[str, Any]] | None] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    exchanges: int = 0
    life_s: int = 3600
    away: int = 0
    """Status of all answers of the token service, if not 0."""
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    @property
    def properties(self) -> dict[str, str]:
        """Catalog properties that access the store."""
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        service_account = {
            "type": "service_account",
            "client_email": EMAIL,
            "private_key": private.decode(),
            "token_uri": "http://127.0.0.1:1/evil",
        }
        return {
            "gcs.service.host": self.uri,
            "gcs.token-service-endpoint": self.uri,
            "gcs.service-account-key": json.dumps(service_account),
            "gcs.vended-credentials-enabled": "true",
            "gcs.project-id": "project",
        }

    def may(self, token: str, verb: str, *, key: str = "", prefix: str = "") -> bool:
        """Return whether a token may do something."""
        if token not in self.tokens or token in self.ended:
            return False
        rules = self.tokens[token]
        is_allowed = rules is None or any(_allows(rule, verb, key=key, prefix=prefix) for rule in rules)
        if not is_allowed:
            self.refused.append(f"{verb} {key or prefix}")
        return is_allowed

    def given(self, rules: list[dict[str, Any]] | None) -> dict[str, object]:
        """Issue a token."""
        token = f"token-{len(self.tokens)}"
        self.tokens[token] = rules
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.life_s}


def _allows(rule: dict[str, Any], verb: str, *, key: str, prefix: str) -> bool:
    assert rule["availableResource"] == f"//storage.googleapis.com/projects/_/buckets/{BUCKET}"
    if not any(verb in _ROLES[each] for each in rule["availablePermissions"]):
        return False
    name = f"projects/_/buckets/{BUCKET}" if verb == "list" else f"projects/_/buckets/{BUCKET}/objects/{key}"
    return any(_holds(each, name, prefix) for each in rule["availabilityCondition"]["expression"].split(" || "))


def _holds(condition: str, name: str, prefix: str) -> bool:
    if match := _NAMED.fullmatch(condition):
        return name.startswith(match[1])
    match = _LISTED.fullmatch(condition)
    assert match, condition
    return prefix.startswith(match[1])


@contextmanager
def gcs() -> Iterator[GcsServer]:
    """Serve such a store."""
    gcs_server = GcsServer()
    handler = type("Handler", (_Handler,), {"store": gcs_server})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    gcs_server.uri = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield gcs_server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    store: GcsServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def answer(self, status: int, body: object = None) -> None:
        """Send an answer of bytes or JSON."""
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/octet-stream" if isinstance(body, bytes) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self) -> bytes:
        """Read the whole body."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def is_refused(self, verb: str, *, key: str = "", prefix: str = "") -> bool:
        """Refuse requests that the token does not permit."""
        if self.store.may(self.headers.get("authorization", "").removeprefix("Bearer "), verb, key=key, prefix=prefix):
            return False
        self.answer(403, {"error": {"code": 403, "message": "denied"}})
        return True

    def do_POST(self) -> None:
        parts, body = urlsplit(self.path), self.body()
        if parts.path in ("/token", "/v1/token"):
            if self.store.away:
                return self.answer(
                    self.store.away, {"error": "unavailable" if self.store.away >= 500 else "invalid_grant"}
                )
            form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
            return self.answer(200, self.own(form) if parts.path == "/token" else self.exchanged(form))
        assert parts.path == f"/upload/storage/v1/b/{BUCKET}/o", parts.path
        _, metadata, rest = body.split(b"\n\n", 2)
        key = json.loads(metadata.split(b"\n--==0==")[0])["name"]
        if self.is_refused("create", key=key):
            return None
        if key in self.store.files and "ifGenerationMatch" in parse_qs(parts.query):
            return self.answer(412, {"error": {"message": "taken"}})
        self.store.files[key] = rest.removesuffix(b"\n--==0==--")
        return self.answer(200, self.about(key))

    def own(self, form: dict[str, str]) -> dict[str, object]:
        """Issue the account's own token for an assertion that is signed with its key."""
        signed, _, signature = form["assertion"].rpartition(".")
        mark = urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
        self.store.key.public_key().verify(mark, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return self.store.given(None)

    def exchanged(self, form: dict[str, str]) -> dict[str, object]:
        """Exchange the account's token for one with a boundary."""
        assert self.store.tokens[form["subject_token"]] is None
        self.store.exchanges += 1
        return self.store.given(json.loads(unquote(form["options"]))["accessBoundary"]["accessBoundaryRules"])

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        base, _, key = parts.path.partition(f"/b/{BUCKET}/o")
        key = unquote(key.lstrip("/"))
        if not key:
            prefix = query.get("prefix", [""])[0]
            return None if self.is_refused("list", prefix=prefix) else self.answer(200, self.listed(prefix, query))
        if self.is_refused("get", key=key):
            return None
        if key not in self.store.files:
            return self.answer(404, {"error": {"message": "none"}})
        return self.answer(200, self.store.files[key] if base.startswith("/download") else self.about(key))

    def do_DELETE(self) -> None:
        key = unquote(urlsplit(self.path).path.partition(f"/b/{BUCKET}/o/")[2])
        if not self.is_refused("delete", key=key):
            self.answer(200 if self.store.files.pop(key, None) is not None else 404)

    def listed(self, prefix: str, query: dict[str, list[str]]) -> dict[str, object]:
        """List names below a prefix, and common prefixes up to the delimiter."""
        sign = query.get("delimiter", [""])[0]
        keys = [each for each in sorted(self.store.files) if each.startswith(prefix)]
        folded = {each[: each.index(sign, len(prefix)) + 1] for each in keys if sign and sign in each[len(prefix) :]}
        items = [self.about(each) for each in keys if not sign or sign not in each[len(prefix) :]]
        return {"items": items, "prefixes": sorted(folded)}

    def about(self, key: str) -> dict[str, object]:
        """Return the metadata of an object."""
        return {
            "name": key,
            "bucket": BUCKET,
            "size": str(len(self.store.files[key])),
            "generation": "1",
            "updated": "2026-01-01T00:00:00Z",
        }
