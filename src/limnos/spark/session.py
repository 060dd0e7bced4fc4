# SPDX-License-Identifier: Apache-2.0
"""SparkSessions with the catalogs of a metalake.

`session` creates a session for a server, a metalake and a caller, in which `main.a.b.c.t` works in SQL. Must not know
the server's packages: it uses Iceberg REST and Gravitino REST.

There are two kinds of settings. Settings for the JVM's start (archives, memory, extensions) are passed to the builder
and are visible on a command line. Catalogs, with the caller's credential, are set on the running session, so other
users of the machine cannot read them in the process list.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import sys
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from limnos.client import Client
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.token_text import token_fault
from limnos.spark.collector import DEFAULT_JAVA_OPTIONS, PARALLEL, is_chosen
from limnos.spark.gateway import disable_answer_delay
from limnos.spark.jars import AWS_BUNDLE, cache_directory, ensure_listener, ensure_runtime, ensure_s3, installed_pyspark
from limnos.spark.java import find_java
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.machine import attach_spark, settings_digest, start_lent_spark
from limnos.spark.trust_store import java_options as trusting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from limnos.spark.files import SparkFiles

logger = logging.getLogger(__name__)

DEFAULT_URI = "http://127.0.0.1:8090"
CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
PROVIDER = "lakehouse-iceberg"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_CATALOG_PREFIX = "spark.sql.catalog."
_CATALOG_NAME = re.compile(r"\w[\w-]{0,63}", re.ASCII)
# Spark hides values whose key matches this pattern from its displays. Its default pattern lacks `Authorization`.
_REDACTION = "(?i)secret|password|token|access[.]?key|authorization"
_HEADER = ".header.Authorization"
_DELEGATION = ".header.X-Iceberg-Access-Delegation"
_DELEGATES = "vended-credentials,remote-signing"
"""Delegation modes for tables on S3, in order of preference: vended credentials, then request signing."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SET_LATER = "set on each session"
"""Placeholder for a credential in Spark's start settings.

Spark's event log masks only keys that are in the start settings.
"""

_SYSTEM_HOMES: WeakKeyDictionary[SparkSession, ServerAccess] = WeakKeyDictionary()


def session(
    uri: str = DEFAULT_URI,
    *,
    metalake: str = "lake",
    catalogs: Sequence[str] | None = ("main",),
    token: str | None = None,
    user: str | None = None,
    master: str = "local[*]",
    app_name: str = "limnos",
    config: Mapping[str, str] | None = None,
    lineage: bool = False,
    lance: bool = True,
    ca_file: str | Path | None = None,
    s3: bool = False,
    files: SparkFiles | None = None,
) -> SparkSession:
    """Return a SparkSession in which the catalogs of `metalake` at the server `uri` can be queried as `main.a.b.t`.

    `token` is sent as Bearer; `user` is for servers that accept the Basic user without a password (`simple`
    authentication, loopback). `catalogs` None: all Iceberg catalogs that the caller may see. `master` is any Spark
    master URL. `config` adds and overrides Spark settings. If the process already runs Spark, a new session of it is
    returned, with its own catalogs and credential; of `config` only settings of catalogs then apply. On one machine,
    Java has the parallel collector, unless `config` or the environment names another one. With `lineage`, OpenLineage's
    listener reports each statement's sources and targets to the server, with the credential of the session that started
    Spark. The session has the source `limnos.system`, the tree as tables; with the extra `lance` installed also the
    source `limnos.lance`, unless `lance` is False. `files` are existing JAR archives and a Java runtime; without them
    both are found or fetched. With `s3` Spark reads tables on S3, by vended credentials or request signing. `ca_file`
    is a PEM file of certificate authorities that this process and Spark trust in addition to the system's.

    Raises UnsupportedOperation (no PySpark, no Iceberg runtime for it, or a running Spark without a requested feature),
    ServiceUnavailable (no Java, or an archive cannot be fetched), BadRequest (contradictory arguments), and with
    `catalogs` None the client's errors.
    """
    _check_master(master)
    header = authorization(token=token, user=user)
    if catalogs is None:
        with Client(uri, token=token, user=user, metalake=metalake, ca_file=ca_file) as client:
            catalogs = sorted(catalog.name for catalog in client.catalogs.list() if catalog.provider == PROVIDER)
    installed_pyspark()
    digest = settings_digest(
        {"master": master, "app": app_name, "lineage": lineage, "s3": s3, "ca": ca_file, **(config or {})}
    )
    attach_spark(digest)
    running = _running_session(lineage=lineage, trusts_more=ca_file is not None, s3=s3)
    jars = [] if running is not None else _archives(files, s3=s3, lineage=lineage)
    options = None if ca_file is None or running is not None else trusting(Path(ca_file), cache_directory())
    settings = config_for(
        uri,
        metalake=metalake,
        catalogs=catalogs,
        authorization=header,
        master=master,
        jars=jars,
        lineage=lineage,
        config=config,
        java_options=options,
        s3=s3,
    )
    if running is not None:
        spark = running.newSession()
    else:
        if is_local(master) and not is_chosen(settings, os.environ):
            settings[DEFAULT_JAVA_OPTIONS] = PARALLEL
        entries = lineage_environment(uri, metalake=metalake, authorization=header) if lineage else {}
        spark = _start_spark(
            settings, _launch_environment(master, files) | entries, master=master, app_name=app_name, digest=digest
        )
    disable_answer_delay(spark)
    _set_catalogs(spark, settings, names=catalogs)
    trusted = None if ca_file is None else str(ca_file)
    home = ServerAccess(uri=uri, metalake=metalake, token=token, user=user, ca_file=trusted)
    register_system(spark, home)
    if lance and find_spec("lance") is not None:
        register_lance(spark, home, lineage=lineage)
    return spark


def _set_catalogs(spark: SparkSession, settings: Mapping[str, str], *, names: Sequence[str]) -> None:
    """Give a session the settings of its catalogs, and no credential of another session."""
    for name in names:
        spark.conf.unset(f"{_CATALOG_PREFIX}{name}{_HEADER}")
    for key, value in settings.items():
        if key.startswith(_CATALOG_PREFIX):
            spark.conf.set(key, value)


def _archives(files: SparkFiles | None, *, s3: bool, lineage: bool) -> list[Path]:
    """Return the paths of the JAR files for Spark's class path; missing JAR files are downloaded."""
    own_archives = [ensure_runtime()] if files is None else [Path(path) for path in files.jars]
    return [*own_archives, *([ensure_s3()] if s3 else []), *([ensure_listener()] if lineage else [])]


def _start_spark(
    settings: Mapping[str, str], environment: Mapping[str, str | None], *, master: str, app_name: str, digest: str
) -> SparkSession:
    """Start Spark with all settings except catalog settings, which are set on each session."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy, and only in the extra

    own_settings = {key: value for key, value in settings.items() if not key.startswith(_CATALOG_PREFIX)}
    own_settings |= {key: _SET_LATER for key in settings if key.startswith(_CATALOG_PREFIX) and key.endswith(_HEADER)}
    own_settings |= {"spark.master": master, "spark.app.name": app_name}
    builder = SparkSession.builder
    for key, value in own_settings.items():
        builder = builder.config(key, value)
    with _environment(environment):
        start_lent_spark(own_settings, digest)
        if LISTENER in own_settings.get("spark.extraListeners", ""):
            _quiet_listener(own_settings)
        return builder.getOrCreate()


def another_session(
    running: SparkSession, uri: str, *, metalake: str, catalogs: Sequence[str], token: str, more: Mapping[str, str]
) -> SparkSession:
    """Return a session of a running Spark with its own catalogs and credential.

    It is created for each statement, so it does not search for archives or a Java runtime again. `more` are further
    settings of every catalog; the keys lack the prefix `spark.sql.catalog.<name>.`.
    """
    spark = running.newSession()
    header = authorization(token=token)
    for name in catalogs:
        prefix = f"{_CATALOG_PREFIX}{name}"
        own_settings = _catalog_settings(name, uri=uri, metalake=metalake) | _credential(
            prefix, header, uri=uri, connect=False
        )
        for key, value in (own_settings | {f"{prefix}.{end}": value for end, value in more.items()}).items():
            spark.conf.set(key, value)
    return spark


def _quiet_listener(settings: Mapping[str, str]) -> None:
    """Start the JVM, and let it log only errors of OpenLineage's listener, before Spark starts the listener. Its
    warnings are about its own class loaders, with stack traces, and about plans whose lineage it does not report.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))  # noqa: SLF001
    log4j = SparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001
    log4j.core.config.Configurator.setLevel("io.openlineage", log4j.Level.ERROR)


def register_lance(spark: SparkSession, home: ServerAccess, *, lineage: bool) -> None:
    """Register the session's data source of Lance tables, and enable filter pushdown to it; with `lineage` also the
    listener that reports their lineage.
    """
    from limnos.spark.lance.lineage import listen_for_lance  # noqa: PLC0415 - PySpark is in the extra
    from limnos.spark.lance.source import source_of  # noqa: PLC0415

    spark.conf.set(PUSHDOWN, "true")
    with _active(spark):  # Spark checks the name in the active session, not in this one
        spark.dataSource.register(source_of(home))
    if lineage:
        listen_for_lance(spark, home)


def register_system(spark: SparkSession, home: ServerAccess) -> None:
    """Register the session's data source of system tables, and enable filter pushdown to it. Its tasks that verify
    storage use the same credential.
    """
    from limnos.spark.system.source import source_of  # noqa: PLC0415 - PySpark is in the extra

    spark.conf.set(PUSHDOWN, "true")
    _SYSTEM_HOMES[spark] = home
    with _active(spark):
        spark.dataSource.register(source_of(home))


def system_home(spark: SparkSession) -> ServerAccess | None:
    """Return the server and credential of the session's system tables; None if they are not registered."""
    return _SYSTEM_HOMES.get(spark)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the JVM thread's active session for the body of a `with`, then restore the previous active
    session.
    """
    sessions = spark._jvm.SparkSession  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no call for it
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def config_for(
    uri: str,
    *,
    metalake: str = "lake",
    catalogs: Sequence[str] = ("main",),
    authorization: str | None = None,
    master: str = "local[*]",
    jars: Sequence[Path] = (),
    lineage: bool = False,
    config: Mapping[str, str] | None = None,
    java_options: str | None = None,
    s3: bool = False,
) -> dict[str, str]:
    """Return all Spark settings of a session that `session` would create. Pure function.

    `authorization` is the whole header value. If `master` is the URL of a Spark Connect server, a token is set under a
    key that every such server masks. No `io-impl` is set: a catalog's configuration may name one, and Iceberg's default
    selects the FileIO by the location's scheme, including local files.
    """
    settings = {"spark.sql.extensions": EXTENSIONS, "spark.redaction.regex": _REDACTION}
    archives = ",".join(map(str, jars))
    if archives:
        settings["spark.jars"] = archives
    if lineage:
        settings["spark.extraListeners"] = LISTENER
    if java_options is not None:
        settings[_JAVA_OPTIONS] = java_options
    if is_local(master):
        settings |= _local_settings()
    for name in catalogs:
        settings |= _catalog_settings(name, uri=uri, metalake=metalake)
        settings |= _credential(f"{_CATALOG_PREFIX}{name}", authorization, uri=uri, connect=master.startswith("sc://"))
        if s3:
            settings[f"{_CATALOG_PREFIX}{name}{_DELEGATION}"] = _DELEGATES
    extra = dict(config or {})
    for key, own_value in (("spark.jars", archives), ("spark.extraListeners", settings.get("spark.extraListeners"))):
        if key in extra and own_value:
            extra[key] = f"{own_value},{extra[key]}"
    if "spark.sql.extensions" in extra and EXTENSIONS not in extra["spark.sql.extensions"]:
        extra["spark.sql.extensions"] = f"{EXTENSIONS},{extra['spark.sql.extensions']}"
    if _JAVA_OPTIONS in extra and java_options is not None:
        extra[_JAVA_OPTIONS] = f"{java_options} {extra[_JAVA_OPTIONS]}"
    return settings | extra


def lineage_environment(uri: str, *, metalake: str, authorization: str | None) -> dict[str, str | None]:
    """Return the environment variable that configures OpenLineage's transport, so that its credential is on no command
    line.
    """
    transport: dict[str, object] = {"type": "http", "url": uri.rstrip("/"), "urlParams": {"metalake": metalake}}
    if authorization is not None:
        transport["headers"] = {"Authorization": authorization}
    return {"OPENLINEAGE__TRANSPORT": json.dumps(transport)}


def authorization(*, token: str | None, user: str | None = None) -> str | None:
    """Return the Authorization header's value for a Bearer token or a Basic user; None without either.

    Raises BadRequest if both are given, or the token or user is malformed.
    """
    if token is not None and user is not None:
        raise BadRequest("Give either `token` or `user`, not both.")
    if token is not None:
        token = token.strip()
        if (fault := token_fault(token)) is not None:
            raise BadRequest(f"The token is not valid: {fault}. Pass it exactly as the server printed it.")
        return f"Bearer {token}"
    if user is not None:
        if not user or ":" in user:
            raise BadRequest(f"{user!r} cannot be sent as a Basic user: it is empty or has a colon. Use a token.")
        return f"Basic {base64.b64encode(f'{user}:'.encode()).decode()}"
    return None


def is_local(master: str) -> bool:
    """Return whether the master runs on this machine only: `local`, `local[4]`, `local[*]`, `local-cluster[…]`."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def _check_master(master: str) -> None:
    if master.startswith("sc://"):
        raise UnsupportedOperation(
            f"{master} is a Spark Connect address; `master` takes a Spark master URL such as local[*] or "
            "spark://host:7077."
        )


def _local_settings() -> dict[str, str]:
    """Return settings for one machine: no web UI, few shuffle partitions (the default of 200 is for clusters), driver
    memory.
    """
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    }


def _catalog_settings(name: str, *, uri: str, metalake: str) -> dict[str, str]:
    if not _CATALOG_NAME.fullmatch(name):
        raise BadRequest(f"{name!r} is not a catalog name: letters, digits, `_` and `-`, at most 64 characters.")
    prefix = f"{_CATALOG_PREFIX}{name}"
    return {
        prefix: CATALOG_CLASS,
        f"{prefix}.type": "rest",
        f"{prefix}.uri": _iceberg(uri),
        f"{prefix}.warehouse": f"{metalake}/{name}",
        # The caller's visibility can change between two statements, and a cached table object would hide that.
        f"{prefix}.cache-enabled": "false",
    }


def _credential(prefix: str, authorization: str | None, *, uri: str, connect: bool) -> dict[str, str]:
    """Return the settings by which a catalog sends the caller's credential."""
    if authorization is None:
        return {}
    kind, _, token = authorization.partition(" ")
    if not connect or kind != "Bearer":
        # A plain header avoids Iceberg's OAuth client with its refreshes and warnings.
        return {f"{prefix}.rest.auth.type": "none", f"{prefix}{_HEADER}": authorization}
    return {
        f"{prefix}.rest.auth.type": "oauth2",
        f"{prefix}.token": token,
        # The token is sent as it is; the OAuth endpoint is never called.
        f"{prefix}.oauth2-server-uri": f"{_iceberg(uri)}/v1/oauth/tokens",
        f"{prefix}.token-exchange-enabled": "false",
        f"{prefix}.token-refresh-enabled": "false",
    }


def _iceberg(uri: str) -> str:
    return f"{uri.rstrip('/')}/iceberg"


def _running_session(*, lineage: bool, trusts_more: bool, s3: bool) -> SparkSession | None:
    """Return the SparkSession that runs in this process; None if none runs.

    Raises UnsupportedOperation if it was started without Iceberg's extensions or a requested feature (lineage, S3,
    certificate authorities).
    """
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    context = SparkContext._active_spark_context  # noqa: SLF001 - the public getter would start one
    if context is None:
        return None
    running = SparkSession(context)
    if EXTENSIONS not in (running.conf.get("spark.sql.extensions", "") or ""):
        raise UnsupportedOperation(
            "This process already runs a Spark without Iceberg's extensions, and a running Spark cannot load them: stop"
            " it first (`spark.stop()`), or create the first session with limnos.spark.session."
        )
    if lineage and LISTENER not in (running.conf.get("spark.extraListeners", "") or ""):
        raise UnsupportedOperation(
            "This process already runs a Spark that reports no lineage, and a running Spark cannot enable it: stop it"
            " first (`spark.stop()`), or create the first session with lineage=True."
        )
    configured = f"{context.getConf().get('spark.jars') or ''},{context.getConf().get('spark.jars.packages') or ''}"
    if s3 and AWS_BUNDLE not in configured:
        raise UnsupportedOperation(
            "This process already runs a Spark without support for S3, and a running Spark cannot load it: stop it"
            " first (`spark.stop()`), or create the first session with s3=True."
        )
    if trusts_more and "javax.net.ssl.trustStore" not in (context.getConf().get(_JAVA_OPTIONS) or ""):
        raise UnsupportedOperation(
            "This process already runs a Spark that trusts only the machine's CA certificates, and a running Spark"
            " cannot add others: stop it first (`spark.stop()`), or create the first session with `ca_file`."
        )
    return running


def _launch_environment(master: str, files: SparkFiles | None = None) -> dict[str, str | None]:
    """Return the environment variables to set for the Spark process; None removes a variable. Without `files` the
    function selects a Java runtime.

    SPARK_HOME is overridden by the Spark of the PySpark wheel, because the Iceberg runtime matches that version.
    """
    import pyspark  # noqa: PLC0415

    wheel = str(Path(pyspark.__file__).parent)
    changes: dict[str, str | None] = {
        "JAVA_HOME": str(find_java(cache=cache_directory()).home) if files is None else files.java_home,
        "SPARK_HOME": wheel,
    }
    foreign = os.environ.get("SPARK_HOME")
    if foreign and Path(foreign).resolve() != Path(wheel).resolve():
        logger.info("SPARK_HOME (%s) is ignored: using PySpark %s", foreign, metadata.version("pyspark"))
    if is_local(master):
        # Workers must use this interpreter, because the `python3` of PATH may lack our packages. Ports stay on
        # loopback.
        changes |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return changes


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for the body of a `with`, then restore their old values."""
    before = {key: os.environ.get(key) for key in changes}
    _apply(changes)
    try:
        yield
    finally:
        _apply(before)


def _apply(changes: Mapping[str, str | None]) -> None:
    for key, value in changes.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
