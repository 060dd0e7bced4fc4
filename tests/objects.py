# SPDX-License-Identifier: Apache-2.0
"""An S3-like object store and its token service in this process, which enforce sessions' policies.

moto stores objects and issues sessions. Whether a session's policy permits a request is decided here, from the request
as it was sent. The key `key` is the store's owner, who may do everything. With authorization on, moto itself checks
every signature and the policies of users and roles; a session's policy then applies in addition, as an intersection.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree as ET

import boto3  # type: ignore[import-untyped]
from moto import settings
from moto.core.utils import utcnow
from moto.iam.models import iam_backends
from moto.moto_server.threaded_moto_server import MotoRequestHandler
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from moto.sts.models import AssumedRole, sts_backends
from werkzeug.serving import make_server

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/tables"
BUCKET = "lake"
ELSE = "else"
Environ = dict[str, Any]
_ACCESS_KEY = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/")


@dataclass(kw_only=True)
class RequestFault:
    """Refuses requests of a method whose names match a pattern, with a status: the given number, after others that
    pass.
    """

    method: str
    pattern: str
    status: str
    times: int = 1_000_000
    spared: int = 0
    seen: int = 0

    def has(self, environ: Environ) -> bool:
        """Return whether a request is refused."""
        if environ["REQUEST_METHOD"] != self.method or not re.search(self.pattern, _path_of(environ)):
            return False
        self.seen += 1
        return self.spared < self.seen <= self.spared + self.times


@dataclass(kw_only=True)
class ObjectStoreServer:
    """The server: its address, its received requests, and its refusals."""

    uri: str = ""
    keys: tuple[str, str] = ("key", "secret")
    """The owner's access key and secret."""
    asked: Counter[str] = field(default_factory=Counter)
    """Number of requests by access key and action."""
    refused: list[str] = field(default_factory=list)
    is_away: bool = False
    """The token service answers every request with 503."""
    is_lax: bool = False
    """Sessions' policies are not enforced, as in stores without session policies."""
    life_s: int | None = None
    """Lifetime of sessions issued from now on, whatever is requested; it may be shorter than Amazon allows."""
    trouble: RequestFault | None = None
    """Refusals of requests that the caller may make."""

    @property
    def properties(self) -> dict[str, str]:
        """Catalog properties that access the store, optionally with a role."""
        return {
            "s3.endpoint": self.uri,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
            "s3.access-key-id": self.keys[0],
            "s3.secret-access-key": self.keys[1],
            "s3-role-arn": ROLE,
        }

    def client(self, *keys: str) -> Any:  # noqa: ANN401 - boto3 has no types
        """Return a plain client, by default the owner's."""
        key, secret, token = keys or (*self.keys, None)
        return boto3.client(
            "s3",
            endpoint_url=self.uri,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            region_name="us-east-1",
        )

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of all objects below a prefix."""
        client = self.client()
        object_names = [
            each["Key"]
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            for each in page.get("Contents", ())
        ]
        client.close()
        return object_names

    @staticmethod
    def sessions() -> list[AssumedRole]:
        """All issued sessions."""
        return list(sts_backends[ACCOUNT]["aws"].assumed_roles)

    def end_all(self) -> None:
        """Expire all sessions."""
        for each in self.sessions():
            each.expiration = utcnow() - timedelta(seconds=1)


@contextmanager
def authorized() -> Iterator[ObjectStoreServer]:
    """Serve an object store with authorization on: the owner is a user, and the role permits one of two buckets."""
    with objects() as store:
        words = {
            "endpoint_url": store.uri,
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "region_name": "us-east-1",
        }
        owner = store.client()
        owner.create_bucket(Bucket=ELSE)
        owner.close()
        iam = boto3.client("iam", **words)
        user = iam.create_user(UserName="owner")["User"]["Arn"]
        access_key = iam.create_access_key(UserName="owner")["AccessKey"]
        everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        takes = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": ROLE}
        iam.put_user_policy(UserName="owner", PolicyName="p", PolicyDocument=_policy(everything, takes))
        trust = _policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": user}})
        iam.create_role(RoleName=ROLE.rpartition("/")[2], AssumeRolePolicyDocument=trust)
        opened = {
            "Effect": "Allow",
            "Action": "s3:*",
            "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
        }
        iam.put_role_policy(RoleName=ROLE.rpartition("/")[2], PolicyName="p", PolicyDocument=_policy(opened))
        iam.close()
        store.keys = access_key["AccessKeyId"], access_key["SecretAccessKey"]
        before, settings.INITIAL_NO_AUTH_ACTION_COUNT = settings.INITIAL_NO_AUTH_ACTION_COUNT, 0
        try:
            yield store
        finally:
            settings.INITIAL_NO_AUTH_ACTION_COUNT = before
            iam_backends[ACCOUNT]["aws"].reset()  # moto keeps users for the whole process


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


_serving: list[ObjectStoreServer] = []
"""Running stores. moto has one set of buckets for the process, which the last store to stop empties."""


@contextmanager
def objects() -> Iterator[ObjectStoreServer]:
    """Serve an object store with one bucket. It is empty unless another store of this process runs."""
    store = ObjectStoreServer()
    _serving.append(store)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a log line for each request
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, _guarded(store, app), threaded=True, request_handler=MotoRequestHandler)
    server.daemon_threads = True  # type: ignore[attr-defined]  # of socketserver: clients keep their connections
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.uri = f"http://127.0.0.1:{server.server_address[1]}"
    owner = store.client()
    owner.create_bucket(Bucket=BUCKET)
    owner.close()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        _serving.remove(store)
        if not _serving:
            s3_backends[ACCOUNT]["aws"].reset()


def _guarded(store: ObjectStoreServer, app: Callable[..., Any]) -> Callable[..., Any]:
    def answer(environ: Environ, start: Callable[..., Any]) -> Any:  # noqa: ANN401 - WSGI's
        key, _, service = _asker(environ)
        if service == "sts":
            if store.is_away:
                start("503 Service Unavailable", [("content-type", "text/xml")])
                return [b"<ErrorResponse><Error><Code>ServiceUnavailable</Code></Error></ErrorResponse>"]
            store.asked["sts"] += 1
            if store.life_s is not None:
                return [_shortened(b"".join(app(environ, start)), store.life_s)]
        elif store.trouble is not None and store.trouble.has(environ):
            code = "AccessDenied" if store.trouble.status.startswith("403") else "SlowDown"
            return _refusal(environ, start, store.trouble.status, code)
        elif key != store.keys[0] and not store.is_lax:
            for action, resource, prefix in _wants(environ):
                store.asked[action] += 1
                if not _may(environ, key, action=action, resource=resource, prefix=prefix):
                    store.refused.append(f"{action} {resource} {prefix or ''}")
                    return _refusal(environ, start, "403 Forbidden", "AccessDenied")
        return app(environ, start)

    return answer


def _refusal(environ: Environ, start: Callable[..., Any], status: str, code: str) -> list[bytes]:
    """Refuse a request. The answer to HEAD has no body: a client treats bytes after its head as a broken answer."""
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    start(status, [("content-type", "application/xml"), ("content-length", str(len(body)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _shortened(answer: bytes, life_s: int) -> bytes:
    """Shorten the lifetime of a session that was just issued."""
    key = re.search(rb"<AccessKeyId>([^<]+)<", answer)
    assert key, answer
    session = next(each for each in ObjectStoreServer.sessions() if each.access_key_id == key[1].decode())
    session.expiration = utcnow() + timedelta(seconds=life_s)
    end = re.compile(rb"(?<=<Expiration>)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")  # the replacement has the same length
    assert end.search(answer), answer
    return end.sub(session.expiration.strftime("%Y-%m-%dT%H:%M:%S").encode(), answer)


def _asker(environ: Environ) -> tuple[str, str, str]:
    """Return the access key, region and service of a request."""
    match = _ACCESS_KEY.search(environ.get("HTTP_AUTHORIZATION", ""))
    return ("", "", "") if match is None else (match[1], match[2], match[3])


def _path_of(environ: Environ) -> str:
    return unquote(environ.get("RAW_URI", environ["PATH_INFO"]).partition("?")[0]).lstrip("/")


def _wants(environ: Environ) -> Iterator[tuple[str, str, str | None]]:
    """Return a request's action, resource and list prefix."""
    path = _path_of(environ)
    bucket, _, key = path.partition("/")
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    method, one = environ["REQUEST_METHOD"], f"arn:aws:s3:::{bucket}/{key}"
    if not key:
        if method == "POST" and "delete" in query:
            for each in _deleted(environ):
                yield "s3:DeleteObject", f"arn:aws:s3:::{bucket}/{each}", None
        elif "location" in query:
            yield "s3:GetBucketLocation", f"arn:aws:s3:::{bucket}", None
        elif method in ("GET", "HEAD"):
            yield "s3:ListBucket", f"arn:aws:s3:::{bucket}", query.get("prefix", [""])[0]
        else:
            yield "s3:Else", f"arn:aws:s3:::{bucket}", None
        return
    if source := environ.get("HTTP_X_AMZ_COPY_SOURCE"):
        yield "s3:GetObject", f"arn:aws:s3:::{unquote(source).lstrip('/')}", None
    if method == "DELETE":
        yield ("s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject"), one, None
    elif method in ("GET", "HEAD"):
        yield ("s3:ListMultipartUploadParts" if "uploadId" in query else "s3:GetObject"), one, None
    else:
        yield "s3:PutObject", one, None


def _deleted(environ: Environ) -> list[str]:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    return [each.text or "" for each in ET.fromstring(body).iter() if each.tag.endswith("Key")]


def _may(environ: Environ, key: str, *, action: str, resource: str, prefix: str | None) -> bool:
    """Return whether a session permits an action: it has not expired, its token is correct, and its policy allows
    it.
    """
    session = next((each for each in ObjectStoreServer.sessions() if each.access_key_id == key), None)
    if session is None or environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != session.session_token:
        return False
    if session.expiration.replace(tzinfo=None) <= utcnow().replace(tzinfo=None):
        return False
    statements = json.loads(session.policy)["Statement"]
    return any(_allows(each, action=action, resource=resource, prefix=prefix) for each in statements)


def _allows(statement: dict[str, Any], *, action: str, resource: str, prefix: str | None) -> bool:
    assert statement["Effect"] == "Allow"
    condition = statement.get("Condition")
    if condition is not None:
        assert list(condition) == ["StringLike"], condition
        assert list(condition["StringLike"]) == ["s3:prefix"], condition
        if prefix is None or not _like(condition["StringLike"]["s3:prefix"], prefix):
            return False
    return _like(statement["Action"], action) and _like(statement["Resource"], resource)


def _like(patterns: str | list[str], text: str) -> bool:
    each = [patterns] if isinstance(patterns, str) else patterns
    return any(
        re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) for pattern in each
    )
