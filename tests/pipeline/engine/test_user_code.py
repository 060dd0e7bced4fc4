# SPDX-License-Identifier: Apache-2.0
"""The line of the user's own code in errors of Python steps."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

from limnos.pipeline.engine.user_code import place_in_function, python_cause

EXECUTOR = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 1234, in main
    process()
  File "/home/ana/shop/boom.py", line 7, in spelled
    return city.uper()
           ^^^^^^^^^
AttributeError: \'str\' object has no attribute \'uper\'
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""


def _module(directory: Path, text: str) -> ModuleType:
    file = directory / "boom.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("boom", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_error_on_an_executor_names_the_line_of_the_function() -> None:
    """Of a worker's traceback the message has the file, the line, the code and the error, and no stack of Java."""
    assert python_cause(EXECUTOR) == (
        "boom.py:7, in spelled: return city.uper()\nAttributeError: 'str' object has no attribute 'uper'"
    )


def test_error_without_code_of_the_user_is_left_to_spark() -> None:
    """Errors of queries, and tracebacks of libraries alone, have no place in a function."""
    assert python_cause("[UNRESOLVED_COLUMN] nmae") is None
    assert python_cause(EXECUTOR.replace("/home/ana/shop/", "/x/pyspark/")) is None


def test_error_of_a_function_names_the_innermost_line_of_its_directory(tmp_path: Path) -> None:
    """The place is the line in the step's directory that led to the error, not the library below it."""
    module = _module(
        tmp_path, "import json\n\ndef inner(x):\n    return json.loads(x)\n\ndef make(x):\n    return inner(x)\n"
    )

    with pytest.raises(ValueError, match="Expecting") as error:
        module.make("{")

    assert place_in_function(error.value, module.make) == "boom.py:4, in inner: return json.loads(x)"
    assert place_in_function(error.value, len) is None


def test_long_message_is_searched_in_linear_time() -> None:
    """A message of megabytes with many frames is cut before it is searched."""
    began = time.process_time()

    python_cause("Traceback (most recent call last)\n" + '  File "a.py", line 1, in f\n' * 200_000)

    assert time.process_time() - began < 5
