# SPDX-License-Identifier: Apache-2.0
"""Object stores: the same contract as local files, tested with an S3 server in this process."""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from limnos.files import FileStore, store_for
from limnos.files.remote import RemoteFiles, StoreOptions, options_from
from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    MissingFile,
    ServiceUnavailable,
    StorageFailed,
    TooLarge,
    UnsupportedOperation,
)
from limnos.model.extras import SCHEME_EXTRAS

KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 server with one bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
    )
    client.create_bucket(Bucket="bucket")
    yield url
    server.stop()


@pytest.fixture
def properties(endpoint: str) -> dict[str, str]:
    """Catalog properties for access to the server."""
    return {**KEYS, "s3.endpoint": endpoint, "s3.path-style-access": "true"}


@pytest.fixture
def files(properties: dict[str, str]) -> FileStore:
    """The store of the bucket."""
    return store_for("s3://bucket/warehouse", properties)


@pytest.mark.parametrize("name", ["plain", "a b", "c%20d", "é ü", "日本", "x:y", "*", "[a]", "a+b", "a//b"])
def test_a_file_round_trips_under_any_key(files: FileStore, name: str) -> None:
    """Keys are raw text, and `s3a` locations name the same object as `s3` ones."""
    files.write_new(f"s3://bucket/round/{name}/v1.json", b"{}")

    assert files.read(f"s3a://bucket/round/{name}/v1.json") == b"{}"
    assert files.exists(f"s3://bucket/round/{name}/v1.json") is True


def test_a_file_is_never_overwritten(files: FileStore) -> None:
    """A second write to a name is refused, and the first one's bytes do not change."""
    files.write_new("s3://bucket/once/v1.json", b"first")

    with pytest.raises(AlreadyExists, match="write under a fresh name"):
        files.write_new("s3://bucket/once/v1.json", b"second")
    assert files.read("s3://bucket/once/v1.json") == b"first"


def test_repeated_write_of_same_bytes_succeeds(files: FileStore) -> None:
    """A write that the client repeats with the same bytes, because the answer was lost, succeeds."""
    files.write_new("s3://bucket/again/v1.json", b"body")
    files.write_new("s3://bucket/again/v1.json", b"body")

    assert files.read("s3://bucket/again/v1.json") == b"body"


@pytest.mark.parametrize("location", ["s3://bucket/absent", "s3a://no-such-bucket/x", "s3://bucket/directory"])
def test_missing_key_bucket_and_prefix_are_missing_files(files: FileStore, location: str) -> None:
    """A missing key, a missing bucket and a prefix of keys are reported as a missing file."""
    if not files.exists("s3://bucket/directory/file"):
        files.write_new("s3://bucket/directory/file", b"x")

    with pytest.raises(MissingFile) as caught:
        files.read(location)
    assert caught.value.message.startswith(f"Failed to open input stream for file: {location}")
    assert files.exists(location) is False


def test_delete_removes_only_named_file(files: FileStore) -> None:
    """Deleting removes only the named file, not those that it would match as a pattern. Deleting again is no error."""
    files.write_new("s3://bucket/gone/a*", b"")
    files.write_new("s3://bucket/gone/ab", b"")
    for _ in range(2):
        files.delete("s3://bucket/gone/a*")

    assert files.exists("s3://bucket/gone/a*") is False
    assert files.exists("s3://bucket/gone/ab") is True


def test_a_file_has_a_length(files: FileStore) -> None:
    """The length of a file is in bytes, and can be 0. A missing file and a directory have no length."""
    for size in (0, 9):
        files.write_new(f"s3://bucket/length/{size}", b"x" * size)

    assert [files.size(f"s3://bucket/length{name}") for name in ("/0", "/9", "/gone", "")] == [0, 9, None, None]


@pytest.mark.parametrize("size", [0, 9, 10])
def test_file_up_to_read_limit_is_read_completely(files: FileStore, size: int) -> None:
    """A file up to the limit is read completely; so is an empty one."""
    files.write_new(f"s3://bucket/limit/{size}", b"x" * size)

    assert files.read(f"s3://bucket/limit/{size}", bytes_max=10) == b"x" * size


def test_a_file_over_the_limit_is_refused(files: FileStore) -> None:
    """A file with one byte more than the limit is refused."""
    files.write_new("s3://bucket/limit/over", b"x" * 11)

    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        files.read("s3://bucket/limit/over", bytes_max=10)


def test_write_to_missing_bucket_error_has_hint(files: FileStore) -> None:
    """The error for a missing bucket tells the caller what to check. The store's own message is only logged."""
    with pytest.raises(StorageFailed, match=r"the server's log has its message\. Check that") as caught:
        files.write_new("s3://no-such-bucket/x", b"")
    assert "bucket does not exist" in str(caught.value.context["cause"])


def test_location_without_key_is_refused(files: FileStore) -> None:
    """Every call refuses a location without a key."""
    calls: list[Callable[[], object]] = [
        lambda: files.read("s3://bucket"),
        lambda: files.exists("s3://bucket/"),
        lambda: files.delete("s3://bucket/"),
        lambda: files.write_new("s3://bucket//", b""),
    ]

    for call in calls:
        with pytest.raises(BadRequest, match="not a file in it"):
            call()


def test_refused_connection_is_unavailable() -> None:
    """A refused connection is Unavailable, so that callers retry."""
    bound_socket = (
        socket.socket()
    )  # bound but not listening: connections are refused, and no other process can take the port
    bound_socket.bind(("127.0.0.1", 0))
    files = store_for("s3://bucket", {**KEYS, "s3.endpoint": f"http://127.0.0.1:{bound_socket.getsockname()[1]}"})
    calls: list[Callable[[], object]] = [
        lambda: files.read("s3://bucket/x"),
        lambda: files.exists("s3://bucket/x"),
        lambda: files.delete("s3://bucket/x"),
        lambda: files.write_new("s3://bucket/x", b""),
    ]

    with bound_socket:
        for call in calls:
            with pytest.raises(ServiceUnavailable, match="refused, or did not answer"):
                call()


def test_missing_credentials_error_names_both_sources(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without credentials in the properties and in the environment, the error names both."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    files = store_for("s3://bucket", {"s3.endpoint": endpoint, "s3.region": "eu-west-1"})

    with pytest.raises(StorageFailed, match=r"catalog's storage properties or the environment's credentials"):
        files.read("s3://bucket/x")


def test_a_store_is_made_once_per_bucket_and_credentials(properties: dict[str, str]) -> None:
    """Locations with the same scheme, bucket and options share a store object. Other credentials or another bucket have
    their own.
    """
    first = store_for("s3://bucket/a", properties)

    assert store_for("s3a://bucket/b", {**properties, "owner": "ada"}) is first
    assert store_for("s3://other/b", properties) is not first
    assert store_for("s3://bucket/a", {**properties, "s3.access-key-id": "other"}) is not first


def test_gravitino_names_are_understood_and_iceberg_names_win() -> None:
    """Gravitino's and Iceberg's names of every option are accepted. If both are given, Iceberg's is used."""
    gravitino = {
        "s3-endpoint": "http://g",
        "s3-access-key-id": "gk",
        "s3-secret-access-key": "gs",
        "s3-session-token": "gt",
        "s3-region": "gr",
        "s3-path-style-access": "true",
    }
    both = options_from("s3", {**gravitino, "s3.endpoint": "http://i", "client.region": "ir"})

    assert dict(both.values) == {
        "endpoint": "http://i",
        "access_key_id": "gk",
        "secret_access_key": "gs",
        "session_token": "gt",
        "region": "ir",
        "path_style_access": "true",
    }


def test_gravitino_names_reach_the_store(endpoint: str) -> None:
    """A catalog with Gravitino's property names reaches the store."""
    options = {
        "s3-endpoint": endpoint,
        "s3-access-key-id": "key",
        "s3-secret-access-key": "secret",
        "s3-region": "us-east-1",
        "s3-path-style-access": "TRUE",
    }
    files = store_for("s3://bucket", options)
    files.write_new("s3://bucket/gravitino", b"x")

    assert files.read("s3://bucket/gravitino") == b"x"


def test_access_key_without_secret_is_refused() -> None:
    """An access key without its secret is refused when the store is created."""
    with pytest.raises(BadRequest, match=r"both 's3\.access-key-id' and 's3\.secret-access-key'"):
        options_from("s3", {"s3.access-key-id": "key"})


def test_options_repr_hides_secrets() -> None:
    """The text representation of options has their names without their values."""
    representation = repr(options_from("s3", KEYS))

    assert representation == "Options(access_key_id, secret_access_key, region)"


def test_missing_s3fs_error_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without s3fs, the error for an S3 location names the extra to install."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "s3", raising=False)

    with pytest.raises(UnsupportedOperation, match=r"pip install -e '\.\[s3\]'"):
        RemoteFiles("s3", root="s3://bucket", options=StoreOptions(()))


def test_missing_gcsfs_error_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gcsfs, the error for a Google location names the package to install."""
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    monkeypatch.setitem(sys.modules, "gcsfs.core", None)  # another test may have imported it

    with pytest.raises(UnsupportedOperation, match=r"pip install -e '\.\[gcs\]'"):
        store_for("gs://bucket/x", {})


def test_write_falls_back_without_conditional_writes(files: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a store answers "not implemented" to a conditional write, the file is written without the condition, because
    its name is unique anyway.
    """
    assert isinstance(files, RemoteFiles)
    system = files._fs
    pipe = system.pipe_file

    def refuse(path: str, data: bytes, mode: str = "overwrite") -> object:
        if mode == "create":
            raise OSError(38, "A header you provided implies functionality that is not implemented")
        return pipe(path, data)

    monkeypatch.setattr(system, "pipe_file", refuse)
    files.write_new("s3://bucket/plain", b"x")

    assert files.read("s3://bucket/plain") == b"x"


@pytest.mark.parametrize("error", [OSError(16, "Slow down"), TimeoutError("timed out"), ConnectionResetError("reset")])
def test_throttled_or_timed_out_store_is_unavailable(
    files: FileStore, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """Throttling, timeouts and broken connections are Unavailable, so that callers retry."""
    assert isinstance(files, RemoteFiles)

    def refuse(path: str, data: bytes, mode: str = "overwrite") -> object:
        raise error

    monkeypatch.setattr(files._fs, "pipe_file", refuse)
    with pytest.raises(ServiceUnavailable, match="Try again"):
        files.write_new("s3://bucket/busy", b"x")


def test_every_store_scheme_has_missing_package_message() -> None:
    """For each scheme of an object store the message about a missing package is defined."""
    from limnos.files.locations import OBJECT_STORES

    assert set(OBJECT_STORES.values()) == {*SCHEME_EXTRAS, "oss"}


def test_files_are_listed_linked_and_moved(files: FileStore) -> None:
    """A list has the files directly at a location with size and time. A link is created once, and a move leaves no file
    at the source.
    """
    files.write_new("s3://bucket/list/a", b"123")
    files.write_new("s3://bucket/list/below/b", b"")
    for _ in range(2):
        files.link_new("s3://bucket/list/a", "s3://bucket/list/c")

    assert [(each.name, each.size, each.modified_ms > 0) for each in files.entries("s3://bucket/list")] == [
        ("a", 3, True),
        ("c", 3, True),
    ]
    assert files.entries("s3://bucket/nothing-there") == []
    files.write_new("s3://bucket/list/other", b"x")
    with pytest.raises(AlreadyExists):
        files.link_new("s3://bucket/list/other", "s3://bucket/list/c")
    with pytest.raises(MissingFile):
        files.link_new("s3://bucket/list/none", "s3://bucket/list/d")
    for _ in range(2):
        files.move("s3://bucket/list/other", "s3://bucket/aside/other")
    assert files.read("s3://bucket/aside/other") == b"x"
    assert not files.exists("s3://bucket/list/other")


def test_link_is_retried_if_existing_name_disappears(files: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another writer's file with the name disappears before the check, the link is created."""
    assert isinstance(files, RemoteFiles)
    files.write_new("s3://bucket/again/a", b"1")
    write, tries = files._fs.pipe_file, [FileExistsError()]

    def pipe_or_raise(path: str, data: bytes, **more: str) -> object:
        if tries:
            raise tries.pop()
        return write(path, data, **more)

    monkeypatch.setattr(files._fs, "pipe_file", pipe_or_raise)
    files.link_new("s3://bucket/again/a", "s3://bucket/again/b")

    assert files.read("s3://bucket/again/b") == b"1"


def test_move_does_not_delete_replacement_at_source(files: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another node has moved the same file meanwhile and written the right file to the source, that file is not
    deleted.
    """
    assert isinstance(files, RemoteFiles)
    files.write_new("s3://bucket/moved/a", b"wrong")
    write = files._fs.pipe_file

    def meanwhile(path: str, data: bytes, **more: str) -> object:
        done = write(path, data, **more)
        monkeypatch.undo()
        files.delete("s3://bucket/moved/a")
        files.write_new("s3://bucket/moved/a", b"right")
        return done

    monkeypatch.setattr(files._fs, "pipe_file", meanwhile)
    files.move("s3://bucket/moved/a", "s3://bucket/moved/aside")

    assert files.read("s3://bucket/moved/aside") == b"wrong"
    assert files.read("s3://bucket/moved/a") == b"right"


def test_unknown_storage_account_is_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store cannot be determined from location and properties, the catalog's configuration is reported as wrong,
    without its key.
    """
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    key = "bm8ga2V5IG9mIGFueWJvZHkncw=="

    with pytest.raises(StorageFailed, match="abfs://lake") as refused:
        store_for("abfs://lake/t", {"adls.account-key": key})

    assert key not in str(refused.value)


def test_listed_files_have_account_of_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed files are spelled like the requested location, including the account's host, which fsspec omits."""
    files = store_for("abfs://lake@tables.dfs.core.windows.net/t", {"adls.account-key": "bm8ga2V5IG9mIGFueWJvZHkncw=="})
    monkeypatch.setattr(files, "_fs", SimpleNamespace(find=lambda _: ["lake/t/a b", "lake/t/d/e"]))

    assert list(files.below("abfs://lake@tables.dfs.core.windows.net/t")) == [
        "abfs://lake@tables.dfs.core.windows.net/t/a b",
        "abfs://lake@tables.dfs.core.windows.net/t/d/e",
    ]


def test_location_with_object_at_or_below_is_not_empty(files: FileStore) -> None:
    """A location is not empty if an object is at it or below it. Directory markers, and objects beside it, do not
    count.
    """
    absent = files.is_empty("s3://bucket/full")
    files._fs.pipe_file("bucket/full/d/", b"")  # type: ignore[attr-defined]
    files.write_new("s3://bucket/full-not/a", b"")
    marked = files.is_empty("s3://bucket/full")
    files.write_new("s3://bucket/full/d/a", b"")
    below = files.is_empty("s3://bucket/full")
    files.write_new("s3://bucket/single", b"")

    assert (absent, marked, below, files.is_empty("s3://bucket/single")) == (True, True, False, False)


@pytest.mark.parametrize("lists, empty", [({}, True), ({"lake/t/d": ["lake/t/d/f"]}, False), ({"lake/t/d": []}, True)])
def test_stores_without_paging_are_listed_by_directory(
    monkeypatch: pytest.MonkeyPatch, lists: dict[str, list[str]], *, empty: bool
) -> None:
    """For stores that cannot list a page of a prefix, directories are listed one by one until a file is found."""
    files = store_for("abfs://lake@tables.dfs.core.windows.net/t", {"adls.account-key": "bm8ga2V5IG9mIGFueWJvZHkncw=="})

    def ls(path: str, *, detail: bool) -> list[dict[str, str]]:
        if path not in lists and path != "lake/t":
            raise FileNotFoundError(path)
        assert detail
        if path == "lake/t":
            return [{"name": each, "type": "directory"} for each in lists]
        return [{"name": each, "type": "file"} for each in lists[path]]

    def info(path: str) -> dict[str, str]:
        return {"name": path, "type": "directory"}

    monkeypatch.setattr(files, "_fs", SimpleNamespace(ls=ls, info=info))

    assert files.is_empty("abfs://lake@tables.dfs.core.windows.net/t") is empty
