# SPDX-License-Identifier: Apache-2.0
"""Allowed storage: roots, the server's own directory, and addresses of object stores."""

from __future__ import annotations

import pytest

from limnos.files import AllowedStorage, allow_everything, root_of
from limnos.model.errors import BadRequest, OutsideRoots

DATA = "file:///srv/data"
OURS = AllowedStorage(
    (f"{DATA}/warehouse", "file:///mnt", "s3://b/k"), ("http://minio:9000",), (DATA,), (f"{DATA}/warehouse",)
)
WIDE = OURS._replace(roots=("file:///",))


@pytest.mark.parametrize("location", [f"{DATA}/warehouse", "/srv/data/warehouse/x", "file:/mnt/x", "s3a://b/k/x"])
def test_locations_below_allowed_root_are_allowed(location: str) -> None:
    """A root and all locations below it are allowed, in every spelling."""
    assert OURS.covers(location)
    OURS.check_root(location)


@pytest.mark.parametrize(
    "location", ["/", "/srv", DATA, f"{DATA}/limnos.db", "/mnt2", "s3://b", "s3://b/kk", "gs://b/k", "s3://c/k"]
)
def test_other_locations_are_refused(location: str) -> None:
    """Every other location is refused. The message names the setting, or says that the location is the server's own."""
    with pytest.raises(OutsideRoots, match=r"--allow-root|server's own directory"):
        OURS.check_root(location)


@pytest.mark.parametrize("location", [DATA, f"{DATA}/limnos.db", f"{DATA}/warehouse2", "/srv/data/"])
def test_server_directory_is_never_allowed(location: str) -> None:
    """The server's own directory, except for the warehouse in it, is not allowed, even if the whole file system is."""
    assert not WIDE.covers(location)
    assert WIDE.covers(f"{DATA}/warehouse/t")
    assert WIDE.covers("file:///srv/data2")


@pytest.mark.parametrize(
    "location, holds", [("/srv", True), ("/", True), (DATA, True), ("/srv/x", False), (f"{DATA}/warehouse/t", False)]
)
def test_location_above_server_directory_is_refused(location: str, holds: bool) -> None:
    """A location above the server's directory is refused, because the server's database would be among the table's
    files.
    """
    assert WIDE.holds_server_files(location) is holds


def test_catalog_roots_are_restricted_to_allowed_storage() -> None:
    """A catalog's roots are restricted to the allowed storage. Of a root above an allowed one only the allowed part
    remains.
    """
    stated = ("file:///", "file:///mnt/a", "s3://b", "s3://c", "gs://x")

    assert OURS.narrow_roots(stated) == (f"{DATA}/warehouse", "file:///mnt", "file:///mnt/a", "s3://b/k")
    assert AllowedStorage(("s3://",)).narrow_roots(stated) == ("s3://b", "s3://c")
    assert allow_everything().narrow_roots(stated) == stated


@pytest.mark.parametrize(
    "text, root", [("s3a://", "s3://"), ("/x/", "file:///x"), ("s3a://b/", "s3://b"), ("gs://", "gs://")]
)
def test_spellings_of_root_have_one_normal_form(text: str, root: str) -> None:
    """Spellings of one root have one normal form. A scheme alone stands for every bucket."""
    assert root_of(text) == root


PUBLIC = [
    "https://s3.amazonaws.com",
    "https://s3.eu-central-1.amazonaws.com",
    "https://s3-us-west-2.amazonaws.com/",
    "https://S3.us-gov-west-1.amazonaws.com:443",
    "https://s3.dualstack.us-east-1.amazonaws.com",
    "https://s3.cn-north-1.amazonaws.com.cn",
    "https://bucket.s3.eu-west-1.amazonaws.com",
    "https://storage.googleapis.com",
    "https://acc.dfs.core.windows.net",
    "https://oss-cn-hangzhou.aliyuncs.com",
    "https://0123abc.r2.cloudflarestorage.com",
    "http://minio:9000",
    "http://MINIO:9000/",
]


@pytest.mark.parametrize("endpoint", PUBLIC)
def test_cloud_and_allowed_endpoints_are_accepted(endpoint: str) -> None:
    """Endpoints of the public clouds with https, and the allowed addresses with their ports, are accepted."""
    OURS.check_endpoints({"s3.endpoint": endpoint})


OTHERS = [
    "http://127.0.0.1:9000",
    "http://minio",
    "https://minio:9000",
    "http://minio:9001",
    "http://s3.amazonaws.com",
    "https://s3.amazonaws.com:8443",
    "https://x.elb.amazonaws.com",
    "https://s3.internal-lb.eu-west-1.elb.amazonaws.com",
    "https://ec2-1-2-3-4.compute-1.amazonaws.com",
    "https://s3.amazonaws.com.evil.com",
    "https://evils3xamazonaws.com",
    "https://s3.amazonaws.com@127.0.0.1",
    "https://a:b@s3.amazonaws.com",
    "https://s3.amazonaws.com#@x",
    "https://s3.amazonaws.com?x",
    "ftp://s3.amazonaws.com",
    "minio:9000",
    "http://[::1]:9000",
    "https://s3.amazonaws.com:x",
    "http://169.254.169.254",
    "//minio:9000",
    " ",
]


@pytest.mark.parametrize("name", ["s3.endpoint", "s3-endpoint", "gcs.service.host", "oss-endpoint"])
@pytest.mark.parametrize("endpoint", OTHERS)
def test_other_endpoints_are_refused(name: str, endpoint: str) -> None:
    """Any other endpoint is refused, under each name of the property, and the message names the setting."""
    with pytest.raises(BadRequest, match="--allow-endpoint"):
        OURS.check_endpoints({name: endpoint})


@pytest.mark.parametrize("region", ["x.evil.com", "a/b", "a@b", "a#", "x" * 64])
def test_invalid_region_is_refused(region: str) -> None:
    """A region is part of an address, and may contain only the characters of a name."""
    with pytest.raises(BadRequest, match="not a region"):
        OURS.check_endpoints({"s3.region": region})
    OURS.check_endpoints({"s3.region": "eu-west-1"})
