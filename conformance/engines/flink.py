"""Flink 1.20.3 with Iceberg's runtime, in one process: a few lines of Java run statements in a table environment.

Compiles them with the compatibility kit's compiler. May import the room's archives and checks, and the Java finder.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conformance.engines.archives import compiler, flink_path
from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.page import block
from conformance.kit.jars import cache_directory
from limnos.spark.java import find_java

_SOURCE = Path(__file__).parent / "java" / "Statements.java"
_RUN_S = 300
_WRITES = {
    "a database": "CREATE DATABASE lake.flink",
    "CREATE TABLE": "CREATE TABLE lake.flink.t (id BIGINT, city STRING)",
    "INSERT": "INSERT INTO lake.flink.t VALUES (1, 'Oslo'), (2, 'Rome')",
    "CREATE TABLE AS": "CREATE TABLE lake.flink.c AS SELECT id, city FROM lake.flink.t",
    "SELECT": "SELECT city FROM lake.flink.c WHERE id = 2",
    "evolve": "ALTER TABLE lake.flink.c ADD size INT",
    "rename": "ALTER TABLE lake.flink.c RENAME TO d",
    "DROP TABLE": "DROP TABLE lake.flink.d",
}
_READS = {
    "a reader selects": "SELECT COUNT(*) FROM lake.`open`.t",
    "a reader uses the database": "USE lake.`open`",
    "a reader selects by the short name": "SELECT city FROM t WHERE id = 1",
}
_REFUSALS = {
    "what is closed stays closed": ("SELECT * FROM lake.closed.t", "USE_SCHEMA"),
    "a reader may not write": ("INSERT INTO lake.`open`.t VALUES (3, 'x')", "MODIFY_TABLE"),
    "a reader may not create": ("CREATE TABLE lake.`open`.u (id BIGINT)", "CREATE_TABLE"),
}
_WANTED = {"SELECT": [["Rome"]], "a reader selects": [["2"]], "a reader selects by the short name": [["Oslo"]]}


def run(lake: Lake) -> list[Check]:
    """Run the administrator's statements, then the reader's, each in a process of its own."""
    checks = Checks("Flink 1.20.3")
    classes = _compiled(lake.work / "flink-classes")
    _told(checks, _answers(classes, lake, token=lake.admin, statements=list(_WRITES.values())), _WRITES)
    refused = {name: statement for name, (statement, _) in _REFUSALS.items()}
    answers = _answers(classes, lake, token=lake.reader, statements=[*_READS.values(), *refused.values()])
    _told(checks, answers[: len(_READS)], _READS)
    for (name, (_, words)), answer in zip(_REFUSALS.items(), answers[len(_READS) :], strict=True):
        checks.expect_refusal(name, lambda answer=answer: _taken(answer), words)
    return checks.made


def _told(checks: Checks, answers: list[dict[str, object]], statements: dict[str, str]) -> None:
    for name, answer in zip(statements, answers, strict=True):
        checks.expect(
            name,
            lambda answer=answer, name=name: _taken(answer) if name in _WANTED else bool(_taken(answer)) or True,
            _WANTED.get(name, True),
        )


def _taken(answer: dict[str, object]) -> object:
    if "error" in answer:
        raise RuntimeError(str(answer["error"]))
    return answer["rows"]


def _compiled(classes: Path) -> str:
    path = os.pathsep.join(map(str, flink_path()))
    command = [str(_java()), "-jar", str(compiler()), "-source", "17", "-target", "17", "-proc:none", "-nowarn"]
    subprocess.run([*command, "-cp", path, "-d", str(classes), str(_SOURCE)], check=True)
    return os.pathsep.join((str(classes), path))


def _answers(path: str, lake: Lake, *, token: str, statements: list[str]) -> list[dict[str, object]]:
    """What each statement came to, in order: `rows` of texts, or the `error` with its causes."""
    script = lake.work / f"flink-{len(list(lake.work.glob('flink-*')))}.json"
    script.touch(mode=0o600)
    script.write_text(json.dumps([block("Flink", uri=lake.iceberg, token=token), *statements]))
    opened = [
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.lang", "java.util", "java.net", "java.nio", "java.time")
    ]
    command = [str(_java()), "-Xmx1g", "-XX:+UseSerialGC", *opened, "-cp", path, "Statements", str(script)]
    with (lake.work / "flink.log").open("ab") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=log, text=True, timeout=_RUN_S, cwd=lake.work, check=False
        )
    answers: list[dict[str, object]] = [
        json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("=")
    ]
    return answers[1:]


def _java() -> Path:
    return find_java(cache=cache_directory()).home / "bin" / "java"
