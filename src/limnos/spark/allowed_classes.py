# SPDX-License-Identifier: Apache-2.0
"""Allow-lists of a Spark process: its file systems, its FileIO, and the table properties that may name classes.

Must not know statements or operations. Hadoop, Iceberg and Parquet construct any class of the class path that a
property names, and open any scheme for which they find a class. Users write those properties and paths, so the process
limits what they can reach. Nothing here needs Java code of our own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from py4j.java_gateway import JavaGateway, JavaObject, JVMView
    from pyspark.sql import SparkSession

LOCAL: Final = frozenset({"file"})
"""The schemes that Hadoop's file systems may open. Iceberg's own FileIO reads object stores."""
LOCAL_IO: Final = "org.apache.iceberg.hadoop.HadoopFileIO"
"""The FileIO of a process that reads files of this machine only."""
STORAGE_IO: Final = "org.apache.iceberg.io.ResolvingFileIO"
"""The FileIO of a process that also reads object stores. It selects Iceberg's class by the scheme of a location."""
REFUSED: Final = "limnos.RefusedFileSystem"
"""The name of a class that does not exist: Hadoop finds no file system for a scheme with this class."""
_SCHEMES: Final = (
    "abfs abfss adl alluxio cos cosn dav dbfs dfs ftp ftps gs har hdfs hftp hsftp http https jfs ks3 maprfs nullscan o3"
    " o3fs obs ofs oss pfile s3 s3a s3bfs s3n sftp swebhdfs swift tos viewfs viewfs-overload wasb wasbs webhdfs"
)
SCHEMES: Final = tuple(_SCHEMES.split())
"""Schemes that Hadoop or its add-ons know, except `file`: refused by name, also on the executors of a cluster."""
FUNCTIONS: Final = ("reflect", "java_method", "try_reflect")
"""Spark's SQL functions that call any method of any class."""
_CACHE: Final = "org.apache.iceberg.CachingCatalog"
_IMPLEMENTATION: Final = re.compile(r"fs\.(?:AbstractFileSystem\.)?([^.]+)\.impl")
_NAMES_CLASS: Final = re.compile(
    r".*[.-]impl|(?:parquet|orc|avro|format)[.-].*(?:class|codecs|factory|filter|listener|mapping|plugin|provider|reporter)"
)
"""Names that end with `impl`, and names of libraries that write files, which end with their words for classes."""
_PINNED: Final = frozenset({"io-impl", "metrics-reporter-impl"})
_NAMES_STORAGE_CLASS: Final = re.compile(r".*[.-](?:impl|factory|plugin|provider)(?:\..*)?")
_OF_COLUMNS: Final = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-",
    "write.parquet.stats-enabled.column.",
)
"""Prefixes of properties whose names end with the name of a column."""
_REDIRECTS: Final = ("rest.client.proxy.hostname", "rest.client.tls.")
_URI: Final = re.compile(r"[{ ]uri=([^,}]*)")
_HADOOP: Final = (
    "dfs. fs. hadoop. io.compression io.erasurecode io.file io.map io.native io.seqfile io.serializations ipc. java."
    " javax. kms. mapred net.topology orc.encrypt orc.key orc.mask parquet.crypto parquet.encryption yarn."
)
_PREFIXES: Final = tuple(_HADOOP.split())
"""Prefixes of names that Hadoop and its libraries read from their configuration."""


class UnsafeTable(BadRequest):
    """Raised for a table whose properties name a class, or configure a library that opens connections."""


def is_unsafe(name: str) -> bool:
    """Return whether a table property may make a library construct a class or open a connection.

    Iceberg passes all properties of a table to the libraries that write its files, as their configuration.
    """
    lower_name = name.strip().lower()
    if lower_name.startswith(_OF_COLUMNS):
        return False
    return lower_name.startswith(_PREFIXES) or _NAMES_CLASS.fullmatch(lower_name) is not None


def check_table(table: JavaObject) -> None:
    """Raise UnsafeTable if a property of a loaded table may make a library construct a class or open a connection."""
    text = str(table.properties().keySet().toString())  # one call to the JVM for all names
    check_names(text[1:-1].split(", "))


def check_names(names: Iterable[str]) -> None:
    """Raise UnsafeTable for the first name of a table property that is unsafe, in alphabetical order."""
    unsafe = sorted(filter(is_unsafe, names))
    if unsafe:
        raise UnsafeTable(
            f"The table has the property {unsafe[0]}, which names a class or configures a connection, so the table is"
            " not opened: remove the property"
        )


def check_storage(table: JavaObject) -> None:
    """Raise UnsafeTable if the configuration of a loaded table's FileIO names a class. Nothing has used it yet."""
    names = str(table.io().properties().keySet().toString())[1:-1].split(", ")
    classes = sorted(name for name in names if name not in _PINNED and _NAMES_STORAGE_CLASS.fullmatch(name))
    if classes:
        raise UnsafeTable(
            f"The configuration of the table's storage has {classes[0]}, which names a class, so the table is not"
            " opened: remove that property"
        )


def hadoop_settings(configured: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark settings that refuse all schemes of `SCHEMES`, except those that `configured` settings name a
    class for. Java's own URLs do not use Hadoop's file systems.
    """
    settings = {f"spark.hadoop.fs.{scheme}.impl": REFUSED for scheme in SCHEMES}
    settings |= {f"spark.hadoop.fs.AbstractFileSystem.{scheme}.impl": REFUSED for scheme in SCHEMES}
    settings["spark.sql.defaultUrlStreamHandlerFactory.enabled"] = "false"
    return {key: value for key, value in settings.items() if key not in configured}


def catalog_settings(implementation: str) -> dict[str, str]:
    """Return the settings of a catalog that fix its classes; the defaults of a server's configuration do not change
    them.
    """
    return {"io-impl": implementation, "metrics-reporter-impl": "org.apache.iceberg.metrics.LoggingMetricsReporter"}


def restrict(spark: SparkSession, *, schemes: frozenset[str] = LOCAL) -> None:
    """Leave only the file systems of `schemes` in the driver, and remove the SQL functions that call any method.

    Raises RuntimeError if Spark has been stopped, and Py4J's errors if Hadoop lacks its register of file systems.
    """
    machine: Any = _machine(spark)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark has no API for it
    names = str(hadoop.getPropsWithPrefix("fs.").keySet().toString())[1:-1].split(", ")
    for name in names:
        match = _IMPLEMENTATION.fullmatch(f"fs.{name}")
        if match is not None and match[1] not in schemes:
            hadoop.set(f"fs.{name}", REFUSED)
    systems = machine.org.apache.hadoop.fs.FileSystem
    systems.getFileSystemClass("file", hadoop)  # loads the register
    field = _class(machine, "org.apache.hadoop.fs.FileSystem").getDeclaredField("SERVICE_FILE_SYSTEMS")
    field.setAccessible(True)
    names_kept = machine.java.util.ArrayList()
    for scheme in sorted(schemes):
        names_kept.add(scheme)
    field.get(None).keySet().retainAll(names_kept)
    functions = machine.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    for name in FUNCTIONS:
        functions.dropFunction(machine.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


def schemes_of(configured: Mapping[str, str]) -> frozenset[str]:
    """Return the schemes that Hadoop may open: `file`, and those for which the given settings name a class."""
    scheme_matches = (re.fullmatch(r"spark\.hadoop\.fs\.([^.]+)\.impl", key) for key in configured)
    return LOCAL | {match[1] for match in scheme_matches if match is not None}


def pin_file_io(spark: SparkSession, catalog: str, *, implementation: str, uri: str) -> None:
    """Load a session's REST catalog, and let it create FileIO objects of one class only.

    Otherwise the configuration in a response to a table's load could name any class. `implementation` is a FileIO
    class, `uri` the server's base URL. The session is the active one of the thread. Raises UnsafeTable if the catalog's
    configuration sends the client to another address, and Py4J's errors, such as for a server that does not respond.
    """
    library = _pins(_machine(spark), spark.sparkContext._gateway, implementation=implementation)  # noqa: SLF001
    manager = spark._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
    rest = manager.catalog(catalog).icebergCatalog()
    if str(rest.getClass().getName()) == _CACHE:
        rest = library.cached_field.get(rest)
    _check_catalog(str(rest.properties().toString()), catalog, uri=f"{uri.rstrip('/')}/iceberg")
    library.builder_field.set(library.session_field.get(rest), library.builder)


def _check_catalog(text: str, catalog: str, *, uri: str) -> None:
    """Raise UnsafeTable if a catalog's merged configuration, as a Java map's text, has another URI than the session's,
    or a proxy. A text takes one call to the JVM; whatever could be such a name in it counts.
    """
    redirects = [name for name in _REDIRECTS if name in text]
    if any(each != uri for each in _URI.findall(text)):
        redirects.append("uri")
    if redirects:
        raise UnsafeTable(
            f"The configuration of the catalog {catalog} sends its clients to another address by {redirects[0]}, so its"
            " tables are not opened: remove that property"
        )


class _FileIOPins:
    """The function that creates FileIO objects of one class, as Java's `BiFunction`, and the fields that lead to its
    place in a catalog.
    """

    def __init__(self, machine: Any, gateway: Any, *, implementation: str) -> None:  # noqa: ANN401 - Java objects
        self.cached_field = _class(machine, _CACHE).getDeclaredField("catalog")
        self.cached_field.setAccessible(True)
        self.session_field = _class(machine, "org.apache.iceberg.rest.RESTCatalog").getDeclaredField("sessionCatalog")
        self.session_field.setAccessible(True)
        sessions = _class(machine, "org.apache.iceberg.rest.RESTSessionCatalog")
        self.builder_field = sessions.getDeclaredField("ioBuilder")
        self.builder_field.setAccessible(True)
        handles = machine.java.lang.invoke.MethodHandles
        names = ("java.lang.String", "java.util.Map", "java.lang.Object")
        types = _array(gateway, machine.java.lang.Class, values=[_class(machine, name) for name in names])
        method = _class(machine, "org.apache.iceberg.CatalogUtil").getMethod("loadFileIO", types)
        handle = handles.publicLookup().unreflect(method)
        hadoop = machine.org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()
        handle = handles.insertArguments(handle, 0, _array(gateway, machine.java.lang.Object, values=[implementation]))
        handle = handles.insertArguments(handle, 1, _array(gateway, machine.java.lang.Object, values=[hadoop]))
        context = _class(machine, "org.apache.iceberg.catalog.SessionCatalog$SessionContext")
        handle = handles.dropArguments(handle, 0, _array(gateway, machine.java.lang.Class, values=[context]))
        proxies = machine.java.lang.invoke.MethodHandleProxies
        self.builder = proxies.asInterfaceInstance(_class(machine, "java.util.function.BiFunction"), handle)


@lru_cache(4)
def _pins(machine: JVMView, gateway: JavaGateway, *, implementation: str) -> _FileIOPins:
    return _FileIOPins(machine, gateway, implementation=implementation)


def _machine(spark: SparkSession) -> JVMView:
    machine = spark._jvm  # noqa: SLF001 - PySpark has no other way to it
    if machine is None:
        raise RuntimeError("Spark has been stopped")
    return machine


def _class(machine: Any, name: str) -> Any:  # noqa: ANN401
    """Return a Java class, found by the class loader that has Spark's JAR archives."""
    loader = machine.java.lang.Thread.currentThread().getContextClassLoader()
    return machine.java.lang.Class.forName(name, True, loader)


def _array(gateway: Any, kind: Any, *, values: list[Any]) -> Any:  # noqa: ANN401
    array = gateway.new_array(kind, len(values))
    for at, value in enumerate(values):
        array[at] = value
    return array
