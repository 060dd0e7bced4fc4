# SPDX-License-Identifier: Apache-2.0
"""Spark's own SQL parser, from the session's JVM or from a JVM started only for parsing.

A `SparkGrammar` parses a statement into a tree. A classic session provides its parser. Otherwise one JVM per process is
started, with Spark's JAR files on its class path and without Spark itself.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.model.errors import UnsupportedOperation
from limnos.model.extras import install_hint
from limnos.pipeline.problems import InvalidQuery
from limnos.spark.gateway import Java, java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.spark.machine import MachineAddress, MachineLoan

_RULES = "org.apache.spark.sql.catalyst.parser"
_CONF = "org.apache.spark.sql.internal.SqlApiConf"
_ANTLR = "org.antlr.v4.runtime"
_LOCK = threading.Lock()
_BARE: list[SparkGrammar] = []
"""The parser of the JVM without Spark; empty until it is started."""
_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC"]
_POSITION = re.compile(r"\s*(SQLSTATE: \w+)?\s*(\(line \d+, pos \d+\))?\s*$")
_CONDITION = re.compile(r"^\[[A-Z_.]+\]\s*")


@dataclass(frozen=True, slots=True)
class ParseTree:
    """A parsed statement: its text, the context of the grammar's rule `singleStatement`, and its parser."""

    text: str
    root: Java
    parser: Java
    grammar: SparkGrammar

    def find_contexts(self, rule: str, *, mark: str = "") -> list[Java]:
        """Return all contexts of a grammar rule or token, in the order of the text.

        `mark` is a part of the text of each context, in upper case as Spark's lexer compares keywords. If the statement
        lacks it, the tree is not searched.
        """
        if mark not in self.text.upper():
            return []
        path = java_class(self.grammar.jvm, f"{_ANTLR}.tree.xpath.XPath")
        # As an array, because a Java iterator ends with an exception. PySpark would look that exception up among the
        # session's own objects, where the other JVM's id may mean any object.
        nodes = path.findAll(self.root, f"//{rule}", self.parser).toArray()
        return [nodes[index] for index in range(len(nodes))]


@dataclass(frozen=True, slots=True)
class SparkGrammar:
    """A JVM with Spark's parser. `jvm` is py4j's view of it."""

    jvm: Java
    sql_parser: Java

    def tree(self, sql: str) -> ParseTree:
        """Parse one statement. Raises InvalidQuery with Spark's message and the position."""
        try:
            characters = self._class(f"{_ANTLR}.CharStreams").fromString(sql)
            lexer = self._class(f"{_RULES}.SqlBaseLexer")(self._class(f"{_RULES}.UpperCaseCharStream")(characters))
            lexer.removeErrorListeners()
            tokens = self._class(f"{_ANTLR}.CommonTokenStream")(lexer)
            parser = self._class(f"{_RULES}.SqlBaseParser")(tokens)
            conf = self._class(_CONF).get()
            self._class(f"{_RULES}.AbstractParser").configureParser(parser, sql, tokens, conf)
            parser.setErrorHandler(self._class(f"{_RULES}.SparkParserErrorStrategy")())
            return ParseTree(text=sql, root=parser.singleStatement(), parser=parser, grammar=self)
        except Exception as error:
            raise _refusal(error) from error

    def settings(self) -> tuple[bool, ...]:
        """Return the settings of the thread's active session by which the grammar reads the same text in another
        way.
        """
        conf = self._class(_CONF).get()
        return conf.ansiEnabled(), conf.enforceReservedKeywords(), conf.doubleQuotedIdentifiers()

    def _class(self, name: str) -> Java:
        return java_class(self.jvm, name)

    def name(self, text: str) -> tuple[str, ...]:
        """Parse a name in a query into its parts."""
        parts = self.sql_parser.parseMultipartIdentifier(text)
        return tuple(parts.apply(index) for index in range(parts.size()))

    def accept(self, sql: str) -> None:
        """Validate a statement by Spark's own planner, to find errors that the grammar does not detect. Raises
        InvalidQuery with Spark's message.
        """
        try:
            self.sql_parser.parsePlan(sql)
        except Exception as error:
            raise _refusal(error) from error


def grammar_of(spark: SparkSession | None) -> SparkGrammar:
    """Return the parser of the session's JVM, or else of the JVM without Spark.

    Raises UnsupportedOperation without PySpark, ServiceUnavailable without a Java runtime.
    """
    session = getattr(spark, "_jsparkSession", None) if spark is not None else None
    if spark is None or session is None:
        return bare_grammar()
    return SparkGrammar(jvm=spark._jvm, sql_parser=session.sessionState().sqlParser())  # noqa: SLF001


def bare_grammar() -> SparkGrammar:
    """Return the parser of a JVM without Spark, which is started once and ends with this process. Raises as
    `grammar_of` does.
    """
    with _LOCK:
        if not _BARE:
            _BARE.append(_start_machine())
        return _BARE[0]


def archives() -> Path:
    """Return the directory of Spark's JAR files.

    Raises UnsupportedOperation if PySpark or its JAR files are not installed.
    """
    spec = find_spec("pyspark")
    jars = Path(spec.submodule_search_locations[0]) / "jars" if spec and spec.submodule_search_locations else None
    if jars is None or not jars.is_dir():
        raise UnsupportedOperation(f"Spark's parser is not installed: {install_hint('spark')}")
    return jars


def _start_machine() -> SparkGrammar:
    jars = archives()
    from py4j.java_gateway import GatewayParameters, JavaGateway  # noqa: PLC0415

    from limnos.spark.machine import drop_foreign_objects, loan  # noqa: PLC0415

    machine_loan = loan("parser")
    address = _launch(jars) if machine_loan is None else _borrow(machine_loan, jars)
    parameters = GatewayParameters(port=address.port, auth_token=address.secret, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    if machine_loan is not None:
        drop_foreign_objects(gateway)
    jvm = gateway.jvm
    return SparkGrammar(jvm=jvm, sql_parser=jvm.org.apache.spark.sql.execution.SparkSqlParser())


def _launch(jars: Path) -> MachineAddress:
    """Start a machine that ends with this process."""
    from py4j.java_gateway import launch_gateway  # noqa: PLC0415

    from limnos.spark.machine import MachineAddress  # noqa: PLC0415

    port, secret = launch_gateway(
        classpath=f"{jars}/*",
        jarpath=_archive_of_py4j(jars),
        java_path=_java(),
        javaopts=_OPTIONS,
        die_on_exit=True,
        enable_auth=True,
    )
    return MachineAddress(port, secret)


def _borrow(machine_loan: MachineLoan, jars: Path) -> MachineAddress:
    """Return the address of the lent machine, which is started for its lender if it does not run."""
    from limnos.spark.machine import END_ON_EXHAUSTION  # noqa: PLC0415

    machine_loan.is_used = True
    if machine_loan.address is not None:
        return machine_loan.address
    class_path = f"{_archive_of_py4j(jars)}:{jars}/*"
    server = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    command = [_java(), "-classpath", class_path, *_OPTIONS, END_ON_EXHAUSTION, *server]
    return machine_loan.start(command, environment=os.environ, settings="")


def _archive_of_py4j(jars: Path) -> str:
    return str(next(jars.glob("py4j-*.jar")))


def _java() -> str:
    from limnos.spark.jars import cache_directory  # noqa: PLC0415
    from limnos.spark.java import find_java  # noqa: PLC0415

    return str(find_java(cache=cache_directory()).home / "bin" / "java")


def _refusal(error: Exception) -> Exception:
    """Convert an error of the JVM to InvalidQuery, with line and column if it is a ParseException.

    An error that has no Java exception is returned unchanged.
    """
    thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if thrown is None:
        return error
    if not hasattr(error, "_origin") and not thrown.getClass().getName().endswith(".ParseException"):
        return InvalidQuery(f"Spark can't read this query: {_first_line(str(thrown.getMessage()))}")
    message = _first_line(str(thrown.getMessage()))
    line, column = thrown.line(), thrown.startPosition()
    return InvalidQuery(
        f"not SQL that Spark can read: {message}",
        line=line.get() if line.isDefined() else 1,
        column=column.get() + 1 if column.isDefined() else 1,
    )


def _first_line(message: str) -> str:
    """Return Spark's message without its error condition, SQL state and position, which are reported separately."""
    line = next((line for line in message.splitlines() if line.strip()), "no reason was given")
    return _POSITION.sub("", _CONDITION.sub("", line.strip()))
