# SPDX-License-Identifier: Apache-2.0
"""Java machines that outlive the processes which use them.

A resident process lends its machines to a forked process that answers one request (`lend`). The borrower connects to a
machine that runs, or starts it with the lender's pipe as its standard input: the machine ends when the lender closes
that pipe. A Spark is left running, without the sessions, caches and jobs of former borrowers. Must not know requests.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limnos.model.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

END_ON_EXHAUSTION = "-XX:+ExitOnOutOfMemoryError"
"""A machine without memory ends, because its answers could be wrong."""
_START_TIMEOUT_S = 120.0
_ENTRY_IDS = ("t", "j", "rj", "c", "GATEWAY_SERVER")
"""Names of py4j's own objects; all other objects are of borrowers."""


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """Where a machine listens, on loopback, and the secret of its connections."""

    port: int
    secret: str = field(repr=False)
    settings: str = ""
    """A digest of the settings that a running machine cannot change."""


@dataclass(slots=True)
class MachineLoan:
    """A machine that is lent: its address if one runs, else the standard input for a new one."""

    address: MachineAddress | None
    standard_input: int
    on_start: Callable[[MachineAddress], None]
    is_used: bool = False

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], settings: str) -> MachineAddress:
        """Start a machine that writes its port and secret to standard output's first lines, as py4j's server does.

        Raises ServiceUnavailable if it ends before that.
        """
        process = subprocess.Popen(  # noqa: S603 - the Java that was selected
            list(command),
            stdin=self.standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101 - a pipe was requested
        port, secret = process.stdout.readline(), process.stdout.readline()
        if not port.strip().isdigit():
            raise ServiceUnavailable("Java ended before it listened")
        return self._record_start(MachineAddress(int(port), secret.decode().rstrip("\r\n"), settings))

    def start_spark(self, command: Sequence[str], *, environment: Mapping[str, str], settings: str) -> MachineAddress:
        """Start a machine by `spark-submit`, which writes its port and secret to a file. Raises ServiceUnavailable."""
        with tempfile.TemporaryDirectory(prefix="limnos-spark-") as directory:
            file = Path(directory) / "connection"
            process = subprocess.Popen(  # noqa: S603
                list(command),
                stdin=self.standard_input,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(file), "SPARK_CONNECT_MODE": "0"},
                start_new_session=True,
            )
            deadline = time.monotonic() + _START_TIMEOUT_S
            while not file.is_file():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ServiceUnavailable("Spark ended before it listened")
                time.sleep(0.05)
            data = file.read_bytes()
        length = int.from_bytes(data[4:8], "big")
        return self._record_start(
            MachineAddress(int.from_bytes(data[:4], "big"), data[8 : 8 + length].decode(), settings)
        )

    def _record_start(self, address: MachineAddress) -> MachineAddress:
        self.address = address
        self.is_used = True
        self.on_start(address)
        return address


_LOANS: dict[str, MachineLoan] = {}
"""The machines that are lent to this process: `parser` and `spark`."""


def lend(*, parser: MachineLoan, spark: MachineLoan) -> None:
    """Lend machines to this process, until it ends."""
    _LOANS.update(parser=parser, spark=spark)


def loan(name: str) -> MachineLoan | None:
    """Return the machine `parser` or `spark` that is lent to this process; None in an ordinary process."""
    return _LOANS.get(name)


def settings_digest(values: Mapping[str, object]) -> str:
    """Return a digest of the settings of a start."""
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()


def drop_foreign_objects(gateway: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Remove the objects of former borrowers from a machine, of which a killed one could not remove its own."""
    entries = gateway.jvm.java.util.ArrayList()
    for each in _ENTRY_IDS:
        entries.add(each)
    gateway.java_gateway_server.getGateway().getBindings().keySet().retainAll(entries)


def attach_spark(settings: str) -> None:
    """Make the lent Spark this process's Spark, if one runs with these settings. Otherwise the next start is lent."""
    lent = _LOANS.get("spark")
    if lent is None or lent.is_used or lent.address is None or lent.address.settings != settings:
        return
    lent.is_used = True
    _connect(lent.address)
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - heavy, and only in the extra

    gateway: Any = SparkContext._gateway  # noqa: SLF001
    drop_foreign_objects(gateway)
    root = gateway.jvm.SparkSession.getDefaultSession()
    if root.isDefined():
        running = root.get()
        running.sharedState().cacheManager().clearCache()
        context = gateway.jvm.JavaSparkContext.fromSparkContext(running.sparkContext())
        context.sc().cancelAllJobs()
        conf = SparkConf(_jvm=gateway.jvm, _jconf=context.getConf())
        with _worker_python():
            SparkContext(conf=conf, gateway=gateway, jsc=context)
        forget_sent_files()


def start_lent_spark(settings: Mapping[str, str], digest: str) -> None:
    """Start the machine of a Spark for the lender, and connect to it. No-op in an ordinary process.

    Raises ServiceUnavailable.
    """
    lent = _LOANS.get("spark")
    if lent is None or (lent.is_used and lent.address is not None):
        return
    own_settings = {**settings, "spark.python.worker.reuse": "false"}  # workers import the modules that are there now
    options = "spark.driver.extraJavaOptions"
    own_settings[options] = f"{own_settings.get(options, '')} {END_ON_EXHAUSTION}".strip()
    words = [word for key, value in own_settings.items() for word in ("--conf", f"{key}={value}")]
    command = [f"{os.environ['SPARK_HOME']}/bin/spark-submit", *words, "pyspark-shell"]
    _connect(lent.start_spark(command, environment=os.environ, settings=digest))


def forget_sent_files() -> None:
    """Remove the directory of files that Spark sent from the module search path: they may be of a former borrower."""
    from pyspark import SparkFiles  # noqa: PLC0415

    with suppress(ValueError):
        sys.path.remove(SparkFiles.getRootDirectory())


def end_session(spark: SparkSession) -> None:
    """End a session: stop its Spark, or leave a lent Spark without its jobs and caches.

    A Java that has ended already, as by a signal to all processes of a terminal, needs neither.
    """
    with suppress(ConnectionError):
        if "spark" not in _LOANS:
            spark.stop()
            return
        spark.sparkContext.cancelAllJobs()
        spark.catalog.clearCache()


def lent_machines_run() -> bool:
    """Return whether all machines that this process borrowed still answer."""
    return all(not lent.is_used or _answers(lent.address) for lent in _LOANS.values())


def _answers(address: MachineAddress | None) -> bool:
    import socket  # noqa: PLC0415

    if address is None:
        return False
    try:
        socket.create_connection(("127.0.0.1", address.port), timeout=5).close()
    except OSError:
        return False
    return True


def _connect(address: MachineAddress) -> None:
    from pyspark import SparkContext  # noqa: PLC0415

    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(address.port), address.secret
    try:
        SparkContext._ensure_initialized()  # noqa: SLF001 - PySpark has no call for it
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


@contextmanager
def _worker_python() -> Iterator[None]:
    """Let Spark's workers use this interpreter for the body of a `with`, as at the start of a local Spark."""
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYSPARK_PYTHON"]
        else:
            os.environ["PYSPARK_PYTHON"] = before
