# SPDX-License-Identifier: Apache-2.0
"""Documents that point a Spark process at a listener: by each property, path and scheme that its libraries know.

A scripted Iceberg REST catalog serves them, because a Limnos server refuses to store most of them.
"""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tests.iceberg_manifests import POSITIONS, data_file, entry, listed, manifest, manifest_list
from tests.scripted_server import ScriptedAnswer, ScriptedServer

NAMESPACE: Final = "lab"
TIMER: Final = "java.util.Timer"
"""A class that anybody can construct, and which starts a thread named Timer-N."""
CANARY: Final = "org.apache.derby.jdbc.EmbeddedDriver"
"""A class of Spark's archives that nothing loads."""
SCHEMA: Final = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "v", "type": "long", "required": False},
    ],
}


class Listener:
    """A TCP listener on loopback that records each connection, and closes it."""

    def __init__(self, *, holds: bool = False) -> None:
        self.connections: list[bytes] = []
        self.arrived = threading.Event()
        self._holds = holds
        self._held: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.arrived.set()
                if self._holds:
                    self._held.append(connection)
                    self.connections.append(b"")
                    continue
                connection.settimeout(0.5)
                with connection, suppress(OSError):
                    self.connections.append(b"")
                    self.connections[-1] = connection.recv(200)

    def close(self) -> None:
        """Stop, and close all connections."""
        self._socket.close()
        for each in self._held:
            each.close()


@contextmanager
def listening(*, holds: bool = False) -> Iterator[Listener]:
    """Listen for the body of a `with`. With `holds` the listener never answers and never closes a connection."""
    listener = Listener(holds=holds)
    try:
        yield listener
    finally:
        listener.close()


class Plant(NamedTuple):
    """A planted table: the load response for it, and the configuration of its catalog."""

    load: dict[str, Any]
    defaults: dict[str, str]
    overrides: dict[str, str]


class Ground:
    """The directory and the listener of planted tables."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port

    def at(self, scheme: str) -> str:
        """Return a location at the listener; `{}` in the scheme is the listener's host and port."""
        host = f"127.0.0.1:{self.port}"
        return scheme.replace("{}", host) if "{}" in scheme else f"{scheme}://{host}/lab/x.avro"

    def write(self, name: str, content: bytes) -> str:
        """Write a file. Returns its location."""
        path = self.directory / f"{uuid.uuid4()}-{name}"
        path.write_bytes(content)
        return f"file://{path}"

    def rows(self, count: int = 3) -> str:
        """Write a Parquet file of rows. Returns its location."""
        fields = [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("v", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
        columns = [pa.array(range(count)), pa.array(range(count))]
        path = self.directory / f"{uuid.uuid4()}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path)
        return f"file://{path}"

    def files(self, *files: Mapping[str, object], deletes: tuple[Mapping[str, object], ...] = ()) -> str:
        """Write the manifests and the manifest list of data files and delete files. Returns the list's location."""
        manifests = []
        for group, is_deletes in ((files, False), (deletes, True)):
            if group:
                data = manifest([entry(each, snapshot=1, sequence=1) for each in group])
                manifests.append(listed(self.write("m.avro", data), data, deletes=is_deletes))
        return self.write("list.avro", manifest_list(manifests, version=2))

    def rows_file(self) -> dict[str, object]:
        """Return the entry of a new data file that exists."""
        location = self.rows()
        size = Path(location.removeprefix("file://")).stat().st_size
        return data_file(location, record_count=3, file_size_in_bytes=size)

    def plant(self, *, manifest_list: str | None = None, **more: Any) -> Plant:  # noqa: ANN401 - JSON
        """Return a table of three rows. `more` overrides fields of its metadata; names have `_` for `-`."""
        location = self.directory / f"t-{uuid.uuid4()}"
        location.mkdir()
        snapshot = {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": 1_700_000_000_000,
            "schema-id": 0,
            "manifest-list": manifest_list or self.files(self.rows_file()),
            "summary": {"operation": "append"},
        }
        metadata = {
            "format-version": 2,
            "table-uuid": str(uuid.uuid4()),
            "location": f"file://{location}",
            "last-sequence-number": 1,
            "last-updated-ms": 1_700_000_000_000,
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [SCHEMA],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": 1,
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
            "snapshots": [snapshot],
            "statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
        }
        metadata |= {name.replace("_", "-"): value for name, value in more.items()}
        at = f"file://{location}/metadata/1.metadata.json"
        return Plant({"metadata-location": at, "metadata": metadata, "config": {}}, {}, {})

    def with_properties(self, properties: Mapping[str, str]) -> Plant:
        """Return a table with properties."""
        return self.plant(properties=dict(properties))

    def with_config(self, config: Mapping[str, str], **more: Any) -> Plant:  # noqa: ANN401 - JSON
        """Return a table whose load response has a configuration for its reader."""
        planted = self.plant(**more)
        return planted._replace(load={**planted.load, "config": dict(config)})

    def with_defaults(self, defaults: Mapping[str, str], **more: Any) -> Plant:  # noqa: ANN401 - JSON
        """Return a table of a catalog whose configuration has defaults."""
        return self.plant(**more)._replace(defaults=dict(defaults))


Case = Callable[[Ground], Plant]


def _scheme(scheme: str) -> Case:
    return lambda ground: ground.plant(manifest_list=ground.at(scheme))


def _property(**properties: str) -> Case:
    """Return a case of a table property; `__` in a name is `.`, `_` is `-`, and `{}` in a value is the listener."""
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    return _properties(named)


def _properties(properties: Mapping[str, str]) -> Case:
    return lambda ground: ground.with_properties(
        {name: ground.at(value) if "{}" in value else value for name, value in properties.items()}
    )


def _config(config: Mapping[str, str], *, scheme: str = "") -> Case:
    def case(ground: Ground) -> Plant:
        values = {name: ground.at(value) if "{}" in value else value for name, value in config.items()}
        return ground.with_config(values, **({"manifest_list": ground.at(scheme)} if scheme else {}))

    return case


def _defaults(defaults: Mapping[str, str], *, scheme: str = "") -> Case:
    def case(ground: Ground) -> Plant:
        values = {name: ground.at(value) if "{}" in value else value for name, value in defaults.items()}
        return ground.with_defaults(values, **({"manifest_list": ground.at(scheme)} if scheme else {}))

    return case


SCHEMES: Final = (
    "http",
    "https",
    "HTTP",
    "ftp",
    "sftp",
    "hdfs",
    "webhdfs",
    "swebhdfs",
    "hftp",
    "viewfs",
    "s3",
    "s3a",
    "s3n",
    "gs",
    "wasb",
    "wasbs",
    "adl",
    "oss",
    "cosn",
    "obs",
    "o3fs",
    "ofs",
    "swift",
    "jdbc",
    "nullscan",
    "pfile",
    "ldap",
    "rmi",
    "dav",
    "alluxio",
    "abfs://c@{}/x.avro",
    "abfss://c@{}/x.avro",
    "har://http-{}/x.har/y.avro",
    "har://hdfs-{}/x.har/y.avro",
    "jar:http://{}/x.jar!/y.avro",
    "file://{}/x.avro",
    "//{}/x.avro",
    "data://{}/x",
    "http:{}/x.avro",
    "url:http://{}/x",
)
_KEYS: Final = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "client.region": "us-east-1"}
_CASES: Final[dict[str, Case]] = {f"manifest list at {scheme}": _scheme(scheme) for scheme in SCHEMES}
_CASES |= {
    "manifest": lambda ground: ground.plant(
        manifest_list=ground.write("l.avro", manifest_list([listed(ground.at("http"), b"x")], version=2))
    ),
    "data file": lambda ground: ground.plant(manifest_list=ground.files(data_file(ground.at("http")))),
    "data file over hdfs": lambda ground: ground.plant(manifest_list=ground.files(data_file(ground.at("hdfs")))),
    "data file of ORC": lambda ground: ground.plant(
        manifest_list=ground.files(data_file(ground.at("http"), file_format="ORC"))
    ),
    "data file of Avro": lambda ground: ground.plant(
        manifest_list=ground.files(data_file(ground.at("http"), file_format="AVRO"))
    ),
    "position deletes": lambda ground: ground.plant(
        manifest_list=ground.files(ground.rows_file(), deletes=(data_file(ground.at("http"), content=POSITIONS),))
    ),
    "statistics": lambda ground: ground.plant(
        statistics=[
            {
                "snapshot-id": 1,
                "statistics-path": ground.at("http"),
                "file-size-in-bytes": 9,
                "file-footer-size-in-bytes": 9,
                "blob-metadata": [],
            }
        ]
    ),
    "partition statistics": lambda ground: ground.plant(
        partition_statistics=[{"snapshot-id": 1, "statistics-path": ground.at("http"), "file-size-in-bytes": 9}]
    ),
    "metadata log": lambda ground: ground.plant(metadata_log=[{"timestamp-ms": 1, "metadata-file": ground.at("http")}]),
    "location": lambda ground: ground.plant(location=ground.at("http")),
    "location over webhdfs": lambda ground: ground.plant(location=ground.at("webhdfs")),
    "metadata location": lambda ground: (planted := ground.plant())._replace(
        load={**planted.load, "metadata-location": ground.at("http")}
    ),
    "write.data.path": _property(write__data__path="http://{}/d"),
    "write.metadata.path": _property(write__metadata__path="http://{}/m"),
    "write.folder-storage.path": _property(write__folder_storage__path="webhdfs://{}/d"),
    "write.object-storage.path": _property(
        write__object_storage__enabled="true", write__object_storage__path="http://{}/d"
    ),
    "write.location-provider.impl": _property(write__location_provider__impl=TIMER),
    "write.location-provider.impl of Spark": _property(write__location_provider__impl=CANARY),
    "fs.file.impl": _properties({"fs.file.impl": TIMER, "fs.file.impl.disable.cache": "true"}),
    "fs.defaultFS": _properties({"fs.defaultFS": "webhdfs://{}", "write.data.path": "/tmp/limnos-none"}),
    "fs.s3a.endpoint": _properties({"fs.s3a.endpoint": "http://{}", "write.data.path": "s3a://bucket/x"}),
    "fs.s3a.impl": _properties({"fs.s3a.impl": TIMER, "write.data.path": "s3a://bucket/x"}),
    "hadoop key provider": _properties(
        {
            "hadoop.security.key.provider.path": "kms://http@{}/kms",
            "write.format.default": "orc",
            "orc.encrypt": "k:v",
            "orc.mask": "nullify,v",
        }
    ),
    "orc.key.provider": _properties({"orc.key.provider": TIMER, "orc.encrypt": "k:v", "write.format.default": "orc"}),
    "parquet.crypto.factory.class": _properties({"parquet.crypto.factory.class": TIMER}),
    "parquet.encryption.kms": _properties(
        {
            "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
            "parquet.encryption.kms.client.class": TIMER,
            "parquet.encryption.kms.instance.url": "http://{}",
            "parquet.encryption.footer.key": "k",
            "parquet.encryption.column.keys": "k:v",
        }
    ),
    "io.compression.codecs": _properties({"io.compression.codecs": TIMER, "write.parquet.compression-codec": "gzip"}),
    "io.serializations": _properties({"io.serializations": TIMER}),
    "hadoop socket factory": _properties(
        {"hadoop.rpc.socket.factory.class.default": TIMER, "hadoop.socks.server": "{}"}
    ),
    "encryption.kms-impl": _properties({"encryption.key-id": "k", "encryption.kms-impl": TIMER}),
    "metrics-reporter-impl of a table": _properties({"metrics-reporter-impl": TIMER}),
    "io-impl of a table": _properties({"io-impl": TIMER}),
    "s3.endpoint of a table": _properties({"s3.endpoint": "http://{}", "write.data.path": "s3://bucket/x", **_KEYS}),
    "client.factory of a table": _properties({"client.factory": TIMER, "write.data.path": "s3://bucket/x"}),
    "uri of a table": _properties({"uri": "http://{}", "rest.client.proxy.hostname": "127.0.0.1"}),
    "oauth2-server-uri of a table": _properties({"oauth2-server-uri": "http://{}", "credential": "a:b"}),
    "java proxy of a table": _properties({"http.proxyHost": "127.0.0.1", "java.protocol.handler.pkgs": "x"}),
    "write.format.default": _properties({"write.format.default": CANARY}),
    "io-impl of a load": _config({"io-impl": TIMER}),
    "io-impl of Spark in a load": _config({"io-impl": CANARY}),
    "io-impl of S3 in a load": _config(
        {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": "http://{}", **_KEYS}, scheme="s3://b/x"
    ),
    "s3.endpoint of a load": _config({"s3.endpoint": "http://{}", **_KEYS}, scheme="s3://b/x"),
    "s3.client-factory-impl of a load": _config({"s3.client-factory-impl": TIMER, **_KEYS}, scheme="s3://b/x"),
    "client.factory of a load": _config({"client.factory": TIMER, **_KEYS}, scheme="s3://b/x"),
    "client.credentials-provider of a load": _config(
        {"client.credentials-provider": TIMER, **_KEYS}, scheme="s3://b/x"
    ),
    "s3.signer.uri of a load": _config(
        {"s3.remote-signing-enabled": "true", "s3.signer.uri": "http://{}", **_KEYS}, scheme="s3://b/x"
    ),
    "gcs.service.host of a load": _config(
        {"gcs.service.host": "http://{}", "gcs.oauth2.token": "t"}, scheme="gs://b/x"
    ),
    "adls of a load": _config(
        {"adls.sas-token.a": "t", "adls.auth.shared-key.account.name": "a"}, scheme="abfss://c@{}/x"
    ),
    "oauth2-server-uri of a load": _config({"oauth2-server-uri": "http://{}", "credential": "a:b", "token": "t"}),
    "uri of a load": _config({"uri": "http://{}", "header.Host": "x", "rest.client.proxy.hostname": "127.0.0.1"}),
    "metrics-reporter-impl of a load": _config({"metrics-reporter-impl": TIMER}),
    "refresh of credentials of a load": _config(
        {"client.refresh-credentials-endpoint": "http://{}", "client.refresh-credentials-enabled": "true", **_KEYS}
    ),
    "storage credentials": lambda ground: (planted := ground.plant(manifest_list="s3://b/x"))._replace(
        load={
            **planted.load,
            "storage-credentials": [{"prefix": "s3://b", "config": {"s3.endpoint": ground.at("http://{}"), **_KEYS}}],
        }
    ),
    "io-impl of a catalog": _defaults({"io-impl": TIMER}),
    "metrics-reporter-impl of a catalog": _defaults({"metrics-reporter-impl": TIMER}),
    "s3.endpoint of a catalog": _defaults({"s3.endpoint": "http://{}", **_KEYS}, scheme="s3://b/x"),
    "uri of a catalog": _defaults({"uri": "http://{}"}),
    "oauth2-server-uri of a catalog": _defaults(
        {"oauth2-server-uri": "http://{}", "credential": "a:b", "rest.auth.type": "oauth2"}
    ),
    "kms of a catalog": _defaults({"encryption.kms-impl": TIMER, "encryption.kms-type": "aws"}),
    "header of a catalog": _defaults({"header.Host": "127.0.0.1"}),
    "location provider by a catalog": _defaults({"table-override.write.location-provider.impl": TIMER}),
    "redirecting uri of a catalog": lambda ground: ground.plant()._replace(overrides={"uri": ground.at("http://{}")}),
    "proxy of a catalog": lambda ground: ground.plant()._replace(
        overrides={"rest.client.proxy.hostname": "127.0.0.1", "rest.client.proxy.port": str(ground.port)}
    ),
}
CASES: Final[Mapping[str, Case]] = _CASES


def serve(server: ScriptedServer, name: str, planted: Plant, *, catalog: str) -> None:
    """Serve a planted table as `lab.NAME` of a catalog; commits to it are refused."""
    prefix = f"/iceberg/v1/{catalog}"
    config = {"defaults": planted.defaults, "overrides": {"prefix": catalog, **planted.overrides}}
    server.answers[f"GET /iceberg/v1/config?warehouse=lake%2F{catalog}"] = ScriptedAnswer(body=config)
    table = f"{prefix}/namespaces/{NAMESPACE}/tables/{name}"
    server.answers[f"GET {table}"] = ScriptedAnswer(body=planted.load)
    refusal = {"error": {"message": "no commits here", "type": "BadRequestException", "code": 400}}
    server.answers[f"POST {table}"] = ScriptedAnswer(400, refusal)


def dump(value: object) -> str:
    """Return one line of JSON."""
    return json.dumps(value, default=str)
