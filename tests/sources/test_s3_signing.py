# SPDX-License-Identifier: Apache-2.0
"""The objects that a request to an object store accesses, in every spelling; and signatures that equal those of the
store.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from limnos.files import parse
from limnos.model.errors import BadRequest, LimnosError, PermissionDenied
from limnos.sources.s3_signing import (
    BUCKET,
    LIST,
    READ,
    WRITE,
    StoreKeys,
    StoreRequest,
    accesses_of,
    sign_store_request,
)

MINIO = {"s3.endpoint": "http://minio:9000"}
HERE = "http://minio:9000/lake/w/t"
DELETES = '<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>{}</Delete>'


def ask(method: str, uri: str, headers: Mapping[str, str] | None = None, *, body: str | None = None) -> StoreRequest:
    """Return a request."""
    return StoreRequest(
        method=method,
        uri=uri,
        region="us-east-1",
        headers={key: (value,) for key, value in (headers or {}).items()},
        body=body,
    )


def list_accesses(store_request: StoreRequest, properties: Mapping[str, str] = MINIO) -> list[tuple[str, str]]:
    """Return the objects that a request accesses."""
    return [(each.how, each.location) for each in accesses_of(store_request, properties, check=parse)]


@pytest.mark.parametrize(
    "store_request, expected",
    [
        (ask("GET", f"{HERE}/data/f"), [(READ, "s3://lake/w/t/data/f")]),
        (ask("HEAD", f"{HERE}/data/f?x-id=HeadObject"), [(READ, "s3://lake/w/t/data/f")]),
        (ask("GET", "http://lake.minio:9000/w/t/f"), [(READ, "s3://lake/w/t/f")]),
        (ask("GET", f"{HERE}/p%3Da%20b/%C3%A4"), [(READ, "s3://lake/w/t/p=a b/ä")]),
        (ask("GET", f"{HERE}/p=a%252Fb/f"), [(READ, "s3://lake/w/t/p=a%2Fb/f")]),
        (ask("GET", f"{HERE}/a+b"), [(READ, "s3://lake/w/t/a+b")]),
        (ask("PUT", f"{HERE}/f"), [(WRITE, "s3://lake/w/t/f")]),
        (ask("PUT", f"{HERE}/f?partNumber=1&uploadId=u"), [(WRITE, "s3://lake/w/t/f")]),
        (ask("POST", f"{HERE}/f?uploads"), [(WRITE, "s3://lake/w/t/f")]),
        (ask("POST", f"{HERE}/f?uploadId=u"), [(WRITE, "s3://lake/w/t/f")]),
        (ask("DELETE", f"{HERE}/f"), [(WRITE, "s3://lake/w/t/f")]),
        (
            ask("PUT", f"{HERE}/f", {"X-Amz-Copy-Source": "/lake/w/t2/g%20h"}),
            [(WRITE, "s3://lake/w/t/f"), (READ, "s3://lake/w/t2/g h")],
        ),
        (
            ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "lake/w/t2/g+h"}),
            [(WRITE, "s3://lake/w/t/f"), (READ, "s3://lake/w/t2/g+h"), (READ, "s3://lake/w/t2/g h")],
        ),
        (
            ask(
                "POST",
                "http://minio:9000/lake?delete",
                body='<?xml version="1.0" encoding="UTF-8"?>' + DELETES.format("<Object><Key>w/t/a</Key></Object>"),
            ),
            [(WRITE, "s3://lake/w/t/a")],
        ),
        (
            ask("PUT", f"{HERE}/f?partNumber=1&uploadId=u", {"x-amz-copy-source": "lake/w/t2/g"}),
            [(WRITE, "s3://lake/w/t/f"), (READ, "s3://lake/w/t2/g")],
        ),
        (ask("GET", "http://minio:9000/lake?list-type=2&prefix=w%2Ft%2F"), [(LIST, "s3://lake/w/t/")]),
        (ask("GET", "http://minio:9000/lake/?list-type=2&prefix=w/t/&delimiter=/"), [(LIST, "s3://lake/w/t/")]),
        (ask("GET", "http://lake.minio:9000/?prefix=w/t2"), [(LIST, "s3://lake/w/t2")]),
        (ask("GET", "http://minio:9000/lake?list-type=2"), [(LIST, "s3://lake/")]),
        (ask("GET", "http://minio:9000/lake?location"), [(BUCKET, "s3://lake")]),
        (ask("GET", "http://minio:9000/other?location"), [(BUCKET, "s3://other")]),
        (
            ask(
                "POST",
                "http://minio:9000/lake?delete",
                body=DELETES.format("<Object><Key>w/t/a</Key></Object><Object><Key>w/t2/b</Key></Object>"),
            ),
            [(WRITE, "s3://lake/w/t/a"), (WRITE, "s3://lake/w/t2/b")],
        ),
    ],
)
def test_all_objects_and_prefixes_of_a_request_are_detected(
    store_request: StoreRequest, expected: list[tuple[str, str]]
) -> None:
    """All objects and listed prefixes are found, including sources of copies and names in a body."""
    assert list_accesses(store_request) == expected


@pytest.mark.parametrize(
    "uri, location",
    [
        ("https://lake.s3.eu-west-1.amazonaws.com/w/f", "s3://lake/w/f"),
        ("https://s3.amazonaws.com/lake/w/f", "s3://lake/w/f"),
        ("https://a.b.s3.amazonaws.com/w/f", "s3://a.b/w/f"),
        ("https://lake.s3.dualstack.us-east-1.amazonaws.com:443/w/f", "s3://lake/w/f"),
    ],
)
def test_both_amazon_url_styles_are_accepted(uri: str, location: str) -> None:
    """Without an endpoint, or with Amazon's, both of Amazon's URL styles are accepted."""
    for properties in ({}, {"s3.endpoint": "https://s3.eu-west-1.amazonaws.com"}):
        assert list_accesses(ask("GET", uri), properties) == [(READ, location)]


@pytest.mark.parametrize(
    "uri",
    [
        "http://lake.s3.amazonaws.com/w/f",
        "https://lake.s3.amazonaws.com.evil.com/w/f",
        "https://lake.s3.amazonaws.com:8443/w/f",
        "https://sts.amazonaws.com/w/f",
        "https://evil.com/lake/w/f",
        "https://s3.evil.amazonaws.com/lake/w",
        "https://lake.s3-accesspoint.us-east-1.amazonaws.com/w/f",
    ],
)
def test_requests_to_other_hosts_are_not_signed(uri: str) -> None:
    """Requests to other hosts, to other services of Amazon, or without TLS are not signed."""
    with pytest.raises(PermissionDenied, match="not the store"):
        accesses_of(ask("GET", uri), {}, check=parse)


TRICKS = [
    ask("GET", "http://minio:9000/lake/w/t/../t2/f"),
    ask("GET", f"{HERE}/%2e%2e/t2/f"),
    ask("GET", f"{HERE}/%252e%252e/t2/f"),
    ask("GET", f"{HERE}/./f"),
    ask("GET", f"{HERE}/..%2ft2/f"),
    ask("GET", f"{HERE}/a%00b"),
    ask("GET", f"{HERE}/a%0d%0ab"),
    ask("GET", f"{HERE}/%ff"),
    ask("GET", "http://evil:9000/lake/w/t/f"),
    ask("GET", "http://minio:9001/lake/w/t/f"),
    ask("GET", "https://minio:9000/lake/w/t/f"),
    ask("GET", "http://minio:9000@evil/lake/w/t/f"),
    ask("GET", "http://evil@minio:9000/lake/w/t/f"),
    ask("GET", "http://evil\\@minio:9000/lake/w/t/f"),
    ask("GET", "http://notminio:9000/lake/w/t/f"),
    ask("GET", f"{HERE}/f#x"),
    ask("GET", "http://minio:9000/lake%2Fw/t/f"),
    ask("GET", "http://minio:x/lake/w/t/f"),
    ask("GET", f"{HERE}/f?acl"),
    ask("PUT", f"{HERE}/f?acl"),
    ask("PUT", f"{HERE}/f?tagging"),
    ask("GET", f"{HERE}/f?versionId=1"),
    ask("DELETE", f"{HERE}/f?versionId=1"),
    ask("POST", f"{HERE}/f?select&select-type=2"),
    ask("POST", f"{HERE}/f?restore"),
    ask("POST", f"{HERE}/f"),
    ask("PATCH", f"{HERE}/f"),
    ask("OPTIONS", f"{HERE}/f"),
    ask("GET", f"{HERE}/f?X-Amz-Signature=x"),
    ask("GET", f"{HERE}/f?partNumber=1&partNumber=2"),
    ask("GET", f"{HERE}/f?x-id=1;acl"),
    ask("GET", "http://minio:9000/lake?prefix=w/t/&prefix=x/"),
    ask("GET", "http://minio:9000/lake?policy"),
    ask("PUT", "http://minio:9000/lake?policy"),
    ask("DELETE", "http://minio:9000/lake"),
    ask("PUT", "http://minio:9000/lake"),
    ask("HEAD", "http://minio:9000/lake"),
    ask("GET", "http://minio:9000/"),
    ask("GET", "http://minio:9000/lake?versions&prefix=w/t/"),
    ask("GET", "http://minio:9000/lake?uploads&prefix=w/t/"),
    ask("GET", "http://minio:9000/lake?list-type=2&prefix=w/t/../t2/"),
    ask("PUT", f"{HERE}/f", {"x-amz-acl": "public-read"}),
    ask("PUT", f"{HERE}/f", {"X-Amz-Grant-Read": "*"}),
    ask("PUT", f"{HERE}/f", {"x-amz-tagging": "a=b"}),
    ask("PUT", f"{HERE}/f", {"x-amz-website-redirect-location": "/x"}),
    ask("PUT", f"{HERE}/f", {"x-amz-object-lock-mode": "COMPLIANCE"}),
    ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "lake/w/t2/../t/g"}),
    ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "lake/w/t/g?versionId=1"}),
    ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "arn:aws:s3:us-east-1:1:accesspoint/x/object/w/t/g"}),
    ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "lake%2Fw/t/g"}),
    *[
        ask(
            "POST",
            "http://minio:9000/lake?delete",
            body=f'<?xml version="1.0" encoding="{each}"?>' + DELETES.format("<Object><Key>w/t/a</Key></Object>"),
        )
        for each in ("UTF-16", "IBM037", "utf-7", "utf-8-sig", "")
    ],
    ask(
        "POST",
        "http://minio:9000/lake?delete",
        body="<?xml version='1.0' encoding=UTF-16?>" + DELETES.format("<Object><Key>w/t/a</Key></Object>"),
    ),
    ask("PUT", f"{HERE}/f", {"x_amz_copy_source": "lake/w/t2/g"}),
    ask("PUT", f"{HERE}/f", {"X-Amz_Acl": "public-read"}),
    ask("PUT", f"{HERE}/f", {"a": "1", "A": "2"}),
    ask("PUT", f"{HERE}/f", {"a": "1\r\nx-amz-acl: public-read"}),
    ask("PUT", f"{HERE}/f", {"a b": "1"}),
    ask("POST", "http://minio:9000/lake?delete"),
    ask("POST", "http://minio:9000/lake?delete", body="<Delete/>"),
    ask("POST", "http://minio:9000/lake?delete", body="x"),
    ask(
        "POST",
        "http://minio:9000/lake?delete",
        body='<!DOCTYPE d [<!ENTITY a "b">]><Delete><Object><Key>&a;</Key></Object></Delete>',
    ),
    ask(
        "POST",
        "http://minio:9000/lake?delete",
        body=DELETES.format("<Object><Key>w/t/a</Key><VersionId>1</VersionId></Object>"),
    ),
    ask("POST", "http://minio:9000/lake?delete", body=DELETES.format("<Object><Key>w/t/../t2/a</Key></Object>")),
    ask(
        "POST",
        "http://minio:9000/lake?delete",
        body=DELETES.format("<Other><Object><Key>w/t2/a</Key></Object></Other>"),
    ),
    *[
        ask("POST", "http://minio:9000/lake?delete", body=DELETES.format(text))
        for text in (
            "<Object><Key>w/t/a<b>/../../t2/c</b></Key></Object>",
            "<Object><Key>w/t/a</Key><Key>w/t2/a</Key></Object>",
            "<Object><Key>w/t/a</Key>w/t2/a</Object>",
            '<Object><Key xml:base="w/t2">w/t/a</Key></Object>',
            '<Object><Key>w/t/a</Key><Key xmlns="urn:other">w/t2/a</Key></Object>',
            "<Object><Key>w/t/a<?x y?>b</Key></Object>",
            "<Object><Key>w/t/a</Key></Object><Quiet><Object><Key>w/t2/a</Key></Object></Quiet>",
            "w/t2/a<Object><Key>w/t/a</Key></Object>",
        )
    ],
    ask(
        "POST",
        "http://minio:9000/lake?delete",
        {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"},
        body=DELETES.format("<Object><Key>w/t/a</Key></Object>"),
    ),
    ask("GET", f"{HERE}/{'x' * 1025}"),
    ask("GET", f"{HERE}/{'x' * 9000}"),
    ask("GET", f"{HERE}/ä"),
    ask("GET", f"{HERE}/a b"),
    ask("GET", "lake/w/t/f"),
    ask("GET", ""),
]


@pytest.mark.parametrize(
    "store_request", TRICKS, ids=lambda each: f"{each.method} {each.uri[:60]} {''.join(each.headers)[:20]}"
)
def test_ambiguous_requests_are_refused(store_request: StoreRequest) -> None:
    """Requests with dots, encodings, hosts, parameters, headers or bodies that the store might read differently are
    refused.
    """
    with pytest.raises((BadRequest, PermissionDenied)) as refused:
        accesses_of(store_request, MINIO, check=parse)
    assert isinstance(refused.value, LimnosError)


@pytest.mark.parametrize(
    "store_request",
    [
        ask("GET", f"{HERE}/p%3Da%20b/%C3%A4?x-id=GetObject", {"Range": "bytes=0-9", "User-Agent": "a"}),
        ask(
            "PUT",
            f"{HERE}/f?partNumber=1&uploadId=u",
            {"x-amz-content-sha256": "a" * 64, "Content-MD5": "x", "Authorization": "old", "Host": "evil"},
        ),
        ask("POST", "http://minio:9000/lake?delete=", body=DELETES.format("<Object><Key>w/t/a</Key></Object>")),
    ],
)
def test_signature_equals_the_one_the_store_computes(store_request: StoreRequest) -> None:
    """The signature equals one computed from the request on the wire; the client's headers are kept, except for those
    that signing replaces.
    """
    keys = StoreKeys("AKIA", "secret", "token")
    signed_headers = sign_store_request(store_request, keys, region="us-east-1")

    flat = {name.lower(): ", ".join(values) for name, values in signed_headers.items()}
    names = flat["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {name for name in flat if name.startswith("x-amz-")} <= set(names)
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names)
    assert {name.lower() for name in store_request.headers} - {"host"} <= set(flat)
    assert "evil" not in str(signed_headers)

    class Again(S3SigV4Auth):
        def payload(self, _request: object) -> str:
            return flat["x-amz-content-sha256"]

    request = AWSRequest(
        method=store_request.method,
        url=store_request.uri,
        headers={name: flat[name] for name in names if name != "host"},
    )
    request.context["timestamp"] = flat["x-amz-date"]
    store = Again(Credentials("AKIA", "secret", "token"), "s3", "us-east-1")
    expected = store.signature(store.string_to_sign(request, store.canonical_request(request)), request)
    assert flat["authorization"].endswith(f"Signature={expected}")


def test_invalid_region_or_digest_is_refused() -> None:
    """An invalid region or digest is refused, because both are signed."""
    for store_request in (ask("GET", f"{HERE}/f", {"x-amz-content-sha256": "x\ny"}), ask("GET", f"{HERE}/f")):
        with pytest.raises(BadRequest, match="region is not a region"):
            sign_store_request(
                store_request, StoreKeys("a", "b", None), region="us-east-1" if store_request.headers else "us/east"
            )


def test_copy_has_one_source() -> None:
    """Stores differ in which of several values of a header they read."""
    request = ask("PUT", f"{HERE}/f", {"x-amz-copy-source": "lake/w/t/g"})
    two = request._replace(headers={"X-Amz-Copy-Source": ("lake/w/t/g", "lake/w/t2/g")})

    with pytest.raises(BadRequest, match="more than one x-amz-copy-source"):
        list_accesses(two)
