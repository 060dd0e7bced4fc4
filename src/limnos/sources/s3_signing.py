# SPDX-License-Identifier: Apache-2.0
"""Signs a client's S3 requests (SigV4), after determining which objects a request accesses.

Must not know tables or rights of users. Only requests are signed whose host is the catalog's store, and whose
parameters and `x-amz-` headers are all in a list. So a request accesses only the returned objects. Decision record
0059.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from xml.etree import ElementTree as ET

from limnos.model.errors import BadRequest, PermissionDenied, UnsupportedOperation
from limnos.model.extras import missing_part
from limnos.sources.credentials import S3_ENDPOINT, find_property

READ, WRITE, LIST, BUCKET = "read", "write", "list", "bucket"
"""Kinds of access: to an object (READ, WRITE), to names with a prefix, or to a bucket as a whole."""
BODY_BYTES_MAX: Final = 512 << 10
_URI_CHARACTERS_MAX: Final = 8192
_KEY_BYTES_MAX: Final = 1024
_BUCKET: Final = re.compile("[a-z0-9][a-z0-9.-]{1,62}")
_AMAZON: Final = re.compile(
    r"(?:([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\.)?s3(?:-fips)?(?:\.dualstack)?(?:[.-][a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
)
_REGION: Final = re.compile("[A-Za-z0-9-]{1,63}")
_DIGEST: Final = re.compile("[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER")
_KNOWN_HEADERS: Final = re.compile(
    r"x-amz-(?:content-sha256|date|user-agent|te|trailer|decoded-content-length|sdk-checksum-algorithm|checksum-[a-z0-9-]+|request-payer"
    r"|expected-bucket-owner|server-side-encryption(?:-[a-z0-9-]+)?|storage-class|meta-[a-z0-9-]+|metadata-directive"
    r"|copy-source(?:-range|-if-[a-z-]+)?)"
)
"""Headers of S3 that do not change access rights. Others are refused, such as headers that make an object public."""
_SIGNED: Final = re.compile("x-amz-.*|content-md5")
_REPLACED: Final = frozenset({"authorization", "host", "x-amz-date", "x-amz-security-token"})
_OF_OBJECTS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "GET": (READ, frozenset({"x-id", "partNumber", "uploadId", "max-parts", "part-number-marker"})),
    "HEAD": (READ, frozenset({"x-id", "partNumber"})),
    "PUT": (WRITE, frozenset({"x-id", "partNumber", "uploadId"})),
    "POST": (WRITE, frozenset({"x-id", "uploads", "uploadId"})),
    "DELETE": (WRITE, frozenset({"x-id", "uploadId"})),
}
_OF_ENTRIES: Final = frozenset({"Key", "ETag", "Size", "LastModifiedTime"})
_NAMESPACE: Final = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_OF_LISTS: Final = frozenset(
    {
        "x-id",
        "list-type",
        "prefix",
        "delimiter",
        "max-keys",
        "continuation-token",
        "start-after",
        "marker",
        "encoding-type",
        "fetch-owner",
    }
)


class StoreRequest(NamedTuple):
    """The request that a client will send to an object store: its method, URL, headers and body."""

    method: str
    uri: str
    region: str
    headers: Mapping[str, tuple[str, ...]]
    body: str | None = None


class StoreAccess(NamedTuple):
    """A kind of access and its target location: an object, or a prefix for lists."""

    how: str
    location: str


class StoreKeys(NamedTuple):
    """The access key ID, secret and session token with which a request to S3 is signed."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None

    def __repr__(self) -> str:
        return "StoreKeys()"


def accesses_of(
    request: StoreRequest, properties: Mapping[str, str], *, check: Callable[[str], object]
) -> list[StoreAccess]:
    """Return all accesses to objects that a request would make.

    Args:
        request: The request.
        properties: The catalog's properties, which name its store.
        check: Raises for a location that could be parsed in different ways.

    Raises:
        BadRequest: The request is malformed.
        PermissionDenied: The kind of request is not needed for a table's files.
    """
    accesses = _accesses_of(request, properties)
    for each in accesses:
        check(each.location)
    return accesses


def _accesses_of(request: StoreRequest, properties: Mapping[str, str]) -> list[StoreAccess]:
    parts, bucket, path = _split_url(request.uri, properties)
    query = _query(parts.query)
    _check_headers(request.headers)
    if path:
        return _object_accesses(request, bucket, path=path, query=query)
    if request.method == "POST" and "delete" in query:
        return _delete_accesses(request, bucket, query=query)
    return _list_accesses(request, bucket, query=query)


def _split_url(uri: str, properties: Mapping[str, str]) -> tuple[SplitResult, str, str]:
    """Return a URL's parts, its bucket, and the percent-encoded path of its object. Raises BadRequest for a malformed
    URL, PermissionDenied for another store.
    """
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise BadRequest("uri is not a URL") from None
    if (
        len(uri) > _URI_CHARACTERS_MAX
        or not uri.isascii()
        or re.search(r"[\x00-\x20\x7f\\]", uri)
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise BadRequest(
            "uri is not a plain URL of an object store: percent-encode it, without user, fragment and spaces"
        )
    host, path = parts.hostname or "", parts.path.removeprefix("/")
    bucket = _bucket_before(host, port, scheme=parts.scheme, properties=properties)
    if bucket is None:
        raise _other_host_error()
    if bucket:
        return parts, bucket, path
    bucket, _, path = path.partition("/")
    return parts, bucket, path


def _bucket_before(host: str, port: int | None, *, scheme: str, properties: Mapping[str, str]) -> str | None:
    """Return the bucket in a host name, "" if the path names the bucket, or None for the host of another store."""
    endpoint = find_property(properties, S3_ENDPOINT)
    if endpoint is None or _AMAZON.fullmatch(urlsplit(endpoint).hostname or ""):
        match = _AMAZON.fullmatch(host)
        return None if match is None or scheme != "https" or port not in (None, 443) else match[1] or ""
    endpoint_url = urlsplit(endpoint)
    default = {"https": 443, "http": 80}
    if scheme != endpoint_url.scheme or (port or default.get(scheme)) != (
        endpoint_url.port or default.get(endpoint_url.scheme)
    ):
        return None
    own_host = endpoint_url.hostname or ""
    if host == own_host:
        return ""
    return host.removesuffix(f".{own_host}") if host.endswith(f".{own_host}") else None


def _query(text: str) -> dict[str, str]:
    """Parse a URL's query. Raises BadRequest if a store could parse it differently."""
    if ";" in text:
        raise BadRequest("uri has ';' in its query: percent-encode it")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=20, encoding="utf-8", errors="strict")
    except ValueError:
        raise BadRequest("uri has a query that can't be read") from None
    results = dict(pairs)
    if len(results) != len(pairs):
        raise BadRequest("uri has a repeated parameter")
    return results


def _check_headers(headers: Mapping[str, tuple[str, ...]]) -> None:
    names = [name.lower() for name in headers]
    if len(set(names)) != len(names):
        raise BadRequest("headers has a repeated header: join its values")
    for name, values in headers.items():
        if not re.fullmatch("[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", name) or any(
            re.search("[\r\n\0]", value) for value in values
        ):
            raise BadRequest("headers has an invalid header")
        lower = name.lower()
        if "_" in name and lower.replace("_", "-").startswith("x-amz-"):
            raise PermissionDenied(f"Requests with the header {lower} are not signed: write its name with hyphens")
        if lower.startswith("x-amz-") and lower not in _REPLACED and not _KNOWN_HEADERS.fullmatch(lower):
            raise PermissionDenied(f"Requests with the header {lower} are not signed: a table's files do not need it")


def _object_accesses(request: StoreRequest, bucket: str, *, path: str, query: Mapping[str, str]) -> list[StoreAccess]:
    rule = _OF_OBJECTS.get(request.method)
    if (
        rule is None
        or not set(query) <= rule[1]
        or (request.method == "POST" and not {"uploads", "uploadId"} & set(query))
    ):
        raise _unknown(request.method, query)
    accesses = [StoreAccess(rule[0], _location(bucket, path))]
    source = _header(request.headers, "x-amz-copy-source")
    if source is not None:
        # Stores differ in which of several values they read.
        if any(len(values) > 1 for name, values in request.headers.items() if name.lower() == "x-amz-copy-source"):
            raise BadRequest("headers has more than one x-amz-copy-source")
        # Some stores decode "+" as a space there, others do not: the caller needs the right to both objects.
        spellings = dict.fromkeys((source, source.replace("+", "%20")))
        accesses += [StoreAccess(READ, _copy_source(each)) for each in spellings]
    return accesses


def _copy_source(source: str) -> str:
    """Return the source of a copy: `bucket/key`, percent-encoded, with or without a leading slash. Raises
    PermissionDenied for a version of an object.
    """
    if not source.isascii() or "?" in source:
        raise PermissionDenied("Copies of an object's older version, or of one by its access point, are not signed")
    bucket, _, path = source.removeprefix("/").partition("/")
    return _location(bucket, path)


def _delete_accesses(request: StoreRequest, bucket: str, *, query: Mapping[str, str]) -> list[StoreAccess]:
    """Return the objects in the body of a bulk delete. The body is then part of the signature. Raises BadRequest for a
    malformed body, PermissionDenied for an unsigned body or for versions of objects.
    """
    if not set(query) <= {"delete", "x-id"}:
        raise _unknown(request.method, query)
    body = request.body
    if body is None:
        raise PermissionDenied("A request to delete several objects is only signed with its body: send it as 'body'")
    if len(body) > BODY_BYTES_MAX or "<!" in body or body.count("<?") > body.startswith("<?xml "):
        raise BadRequest("body is not a plain list of objects to delete")
    if _has_other_encoding(body):
        raise BadRequest("body declares another encoding than UTF-8, in which the store could read other names")
    header = _header(request.headers, "x-amz-content-sha256")
    if header is not None and header != sha256(body.encode()).hexdigest():
        raise PermissionDenied(
            "x-amz-content-sha256 is not that of the body: a request to delete several objects is only signed with its"
            " body"
        )
    try:
        root = ET.fromstring(body)  # noqa: S314 - no declarations, so no entities
    except ET.ParseError:
        raise BadRequest("body is not a list of objects to delete") from None
    if any(len(each) for each in root if _tag(each) != "Object"):
        raise BadRequest("body is not a list of objects to delete")
    objects = [_fields(each) for each in root if _tag(each) == "Object"]
    if _tag(root) != "Delete" or any(_tag(each) not in ("Object", "Quiet") for each in root) or _is_mixed(root):
        raise BadRequest("body is not a list of objects to delete")
    if not objects or any(not set(each) <= _OF_ENTRIES or not each.get("Key") for each in objects):
        raise PermissionDenied("Such a request may only delete objects by key, not versions")
    return [StoreAccess(WRITE, _check_location(bucket, each["Key"])) for each in objects]


def _has_other_encoding(body: str) -> bool:
    """Return whether an XML declaration names another encoding than UTF-8, in which the body is sent and signed."""
    declaration = body.partition("?>")[0] if body.startswith("<?xml ") else ""
    return (
        "encoding" in declaration and re.search(r"""encoding\s*=\s*["']utf-8["']""", declaration, re.IGNORECASE) is None
    )


def _fields(entry: ET.Element) -> dict[str, str]:
    """Return the values of an entry's elements by their names.

    Raises BadRequest if a store could parse a different value than this function: nested elements, duplicate names,
    text between elements, attributes, other namespaces.
    """
    results = {_tag(each): each.text or "" for each in entry}
    if len(results) < len(entry) or _is_mixed(entry) or any(len(each) or each.attrib for each in entry):
        raise BadRequest("body is not a plain list of objects to delete: each needs one Key, which must be a string")
    return results


def _is_mixed(element: ET.Element) -> bool:
    """Return whether an element has attributes, or text between its child elements."""
    texts = [element.text, *(each.tail for each in element)]
    return bool(element.attrib) or any(text is not None and text.strip() for text in texts)


def _tag(element: ET.Element) -> str:
    """Return an element's name without S3's namespace.

    A name in another namespace is returned unchanged, so that it matches no known name.
    """
    return element.tag.removeprefix(_NAMESPACE)


def _list_accesses(request: StoreRequest, bucket: str, *, query: Mapping[str, str]) -> list[StoreAccess]:
    if request.method == "GET" and set(query) - {"x-id"} == {"location"}:
        return [StoreAccess(BUCKET, _check_location(bucket, "").removesuffix("/"))]  # GetBucketLocation
    if request.method != "GET" or not set(query) <= _OF_LISTS:
        raise _unknown(request.method, query)
    return [StoreAccess(LIST, _check_location(bucket, query.get("prefix", "")))]


def _location(bucket: str, path: str) -> str:
    try:
        key = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("uri names an object that is not UTF-8") from None
    return _check_location(bucket, key)


def _check_location(bucket: str, key: str) -> str:
    """Return a location. Raises BadRequest for an illegal bucket or a key that is too long."""
    if not _BUCKET.fullmatch(bucket) or len(key.encode()) > _KEY_BYTES_MAX:
        raise BadRequest("uri names no object, or one whose name is longer than stores allow")
    return f"s3://{bucket}/{key}"


def _unknown(method: str, query: Iterable[str]) -> PermissionDenied:
    text = ", ".join(sorted(query)) or "no parameters"
    return PermissionDenied(f"{method[:10]} with {text[:200]} is not signed: a table's files do not need it")


def _other_host_error() -> PermissionDenied:
    return PermissionDenied("Requests to this host are not signed: it is not the store of the table's catalog")


def _header(headers: Mapping[str, tuple[str, ...]], expected: str) -> str | None:
    return next((", ".join(values) for name, values in headers.items() if name.lower() == expected), None)


def environment_keys() -> StoreKeys:
    """Return the AWS access keys of the server's environment (botocore's default chain); blocks.

    Raises UnsupportedOperation if botocore is not installed or there are no keys.
    """
    try:
        from botocore.session import Session  # noqa: PLC0415 - of the extra `s3`
    except ImportError as error:
        raise _not_installed_error() from error
    credentials = Session().get_credentials()
    if credentials is None:
        raise UnsupportedOperation("This catalog has no keys to sign requests with: its owner sets them, or a role")
    frozen = credentials.get_frozen_credentials()
    return StoreKeys(frozen.access_key, frozen.secret_key, frozen.token)


def sign_store_request(store_request: StoreRequest, keys: StoreKeys, *, region: str) -> dict[str, list[str]]:
    """Return a request's headers with its SigV4 signature.

    Raises BadRequest for a malformed region or digest, UnsupportedOperation if botocore is not installed.
    """
    try:
        from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - of the extra `s3`
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as above
        from botocore.credentials import Credentials  # noqa: PLC0415 - as above
    except ImportError as error:
        raise _not_installed_error() from error
    digest = (
        sha256(store_request.body.encode()).hexdigest()
        if store_request.body is not None
        else _header(store_request.headers, "x-amz-content-sha256")
    )
    if not _REGION.fullmatch(region) or not _DIGEST.fullmatch(digest or "UNSIGNED-PAYLOAD"):
        raise BadRequest("region is not a region, or x-amz-content-sha256 is not a digest")

    class Signer(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
        def payload(self, request: object) -> str:
            return digest or "UNSIGNED-PAYLOAD"

    signed_headers = {
        name: ", ".join(values) for name, values in store_request.headers.items() if name.lower() not in _REPLACED
    }
    request = AWSRequest(
        method=store_request.method,
        url=store_request.uri,
        headers={name: value for name, value in signed_headers.items() if _SIGNED.fullmatch(name.lower())},
    )
    Signer(Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token), "s3", region).add_auth(request)
    results = {str(name): str(value) for name, value in request.headers.items()}
    names = {name.lower() for name in results}
    return {
        name: [value]
        for name, value in {
            **{key: text for key, text in signed_headers.items() if key.lower() not in names},
            **results,
        }.items()
    }


def _not_installed_error() -> UnsupportedOperation:
    return UnsupportedOperation(missing_part("Signing requests to object stores needs", ("s3",)))
