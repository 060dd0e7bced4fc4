# SPDX-License-Identifier: Apache-2.0
"""Pipelines in Python: decorated functions remain functions, and the declaration equals that of a file."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.pipeline import InvalidPipeline, load, pipeline, step
from limnos.pipeline.declaration import Pipeline, PythonStep, Sql
from limnos.pipeline.file import read
from limnos.pipeline.python import bind_functions
from limnos.pipeline.source_declarations import PythonSource

HEAD = "from limnos.pipeline import pipeline, step\n"


@pytest.fixture(autouse=True)
def _path_as_before() -> Iterator[None]:
    """Restore the imported modules after each test."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def _written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(textwrap.dedent(text))
    return path


def _problems(path: Path) -> list[str]:
    with pytest.raises(InvalidPipeline) as refused:
        load(path).bind_functions()
    return [str(problem).replace(str(path.parent) + "/", "") for problem in refused.value.problems]


@step("a.sums", expect=["total > 0"], write={"mode": "merge", "keys": ["id"]})
def sums(orders: list[int], day: str, *, least: int = 0) -> list[int]:
    """A step over lists, which a plain function accepts like DataFrames."""
    return [order for order in orders if order > least and day]


def test_decorated_function_can_be_called_without_spark() -> None:
    """A decorated function can be called with test inputs, without a server and Spark."""
    assert sums([1, 5, 9], "2026-01-01", least=4) == [5, 9]


def test_python_and_file_declarations_are_equal(tmp_path: Path) -> None:
    """The same keys give the same values in Python and in a file."""
    (tmp_path / "sums.py").write_text("def sums(orders, day, *, least=0): ...")
    declared_pipeline = pipeline(
        "p",
        catalog="main",
        parameters={"day": "date"},
        sources={"orders": "data/*.csv"},
        steps=[step("a.raw", sql="SELECT * FROM orders", partition="days(day)"), sums],
    )
    written = read(
        """
pipeline: p
catalog: main
parameters: {day: date}
sources: {orders: data/*.csv}
steps:
  a.raw: {sql: SELECT * FROM orders, partition: days(day)}
  a.sums: {python: "sums:sums", expect: [total > 0], write: {mode: merge, keys: [id]}}
""",
        file="p.yaml",
        directory=tmp_path,
    )

    body, other = declared_pipeline.steps[1].body, written.steps[1].body
    assert isinstance(body, PythonStep)
    assert isinstance(other, PythonStep)
    assert declared_pipeline.steps[0] == written.steps[0]
    assert (declared_pipeline.sources, declared_pipeline.parameters) == (written.sources, written.parameters)
    assert (declared_pipeline.steps[1].write, declared_pipeline.steps[1].expectations) == (
        written.steps[1].write,
        written.steps[1].expectations,
    )
    assert body.inputs == other.inputs == {"orders": "orders"}
    assert body.callable is sums


def test_wrong_key_is_reported_at_line_of_function() -> None:
    """The error for a wrong key is at the decorated function's line and suggests the nearest key."""
    wrong = step("a.t", expct=["a > 1"])(lambda: None)

    with pytest.raises(InvalidPipeline, match=r"test_python\.py:\d+:1: unknown key 'expct'; did you mean 'expect'\?"):
        pipeline("p", catalog="main", steps=[wrong])


def test_all_errors_of_one_call_are_reported_at_once() -> None:
    """All errors of one call are reported at once: the name, the source, and a function without decorator."""
    with pytest.raises(InvalidPipeline) as refused:
        pipeline("p p", catalog="main", sources={"x": "no format"}, steps=[len])

    assert [problem.message.split(" ")[0] for problem in refused.value.problems] == ["'p", "'no", "len"]


def test_a_function_with_a_query_is_refused() -> None:
    """A step with both a function and a query is refused."""
    with pytest.raises(InvalidPipeline, match="has its query"):
        step("a.t", sql="SELECT 1")(lambda: None)


def test_python_file_is_run_as_a_module(tmp_path: Path) -> None:
    """A Python file is run as a module: it can import from its directory, and its functions belong to its module."""
    _written(tmp_path, "units.py", "MILE = 1609\ndef metres(miles): return [m * MILE for m in miles]")
    path = _written(
        tmp_path,
        "trips.py",
        HEAD
        + """
from units import metres

def rows(spark):
    return spark

@step("a.t", inputs={"miles": "raw.trips"})
def metric(miles):
    return metres(miles)

trips = pipeline("trips", catalog="main", sources={"more": rows}, steps=[metric])
""",
    )

    project = load(path)

    body, kind = project.declaration.steps[0].body, project.declaration.sources[0].kind
    assert isinstance(body, PythonStep)
    assert isinstance(kind, PythonSource)
    assert (project.declaration.name, project.directory) == ("trips", tmp_path)
    assert (body.function, body.inputs) == ("trips:metric", {"miles": ("raw", "trips")})
    assert body.callable is not None
    assert (body.callable([2]), kind.function) == ([3218], "trips:rows")
    assert project.declaration.python_files == ("trips.py",)
    assert project.bind_functions() == project.declaration


WRONG = {
    HEAD: [
        "p_wrong.py:1:1: the file declares no pipeline: end it with 'p = pipeline(…)'; a file must declare one pipeline"
    ],
    HEAD
    + "a = pipeline('a', catalog='m', steps=[step('a.b', sql='SELECT 1')])\nb = pipeline('b', catalog='m', steps=[step('a.b', sql='SELECT 1')])": [
        "p_wrong.py:1:1: the file declares several pipelines; a file must declare one pipeline"
    ],
    "def f(:": ["p_wrong.py:1:7: not Python: invalid syntax"],
    HEAD + "\n1 / 0\n": ["p_wrong.py:3:1: ZeroDivisionError: division by zero"],
    "import no_such_module_at_all": ["p_wrong.py:1:1: ModuleNotFoundError: No module named 'no_such_module_at_all'"],
    "import sys\nsys.exit(3)": ["p_wrong.py:2:1: SystemExit: 3"],
}


@pytest.mark.parametrize("text", WRONG)
def test_exception_in_python_file_is_reported_at_its_line(tmp_path: Path, text: str) -> None:
    """An exception in a Python file is reported at its line, not as a traceback."""
    assert _problems(_written(tmp_path, "p_wrong.py", text)) == WRONG[text]


def _file_of(tmp_path: Path, keys: str) -> Path:
    return _written(
        tmp_path, "p.yaml", f"pipeline: p\ncatalog: m\nparameters: {{day: date}}\nsteps:\n  a.t: {{{keys}}}\n"
    )


FUNCTIONS = "import os\ndef make(orders, day, spark, least=0): ...\nbuilt = os.path.join\n"
NAMED = {
    "python: 'steps:make'": [],
    "python: 'steps:make', inputs: {orders: raw.orders, least: x}": [],
    "python: 'steps:made'": ["p.yaml:5:8: steps has no function 'made'; did you mean 'make'?"],
    "python: 'steps:make', inputs: {order: x}": [
        "p.yaml:5:3: steps:make has no argument 'order'; did you mean 'orders'?",
        "p.yaml:5:3: steps:make needs 'orders', and 'inputs' has no value for it",
    ],
    "python: 'steps:built'": [],
    "python: 'steps.sub:make'": [
        "p.yaml:5:8: there is no module 'steps.sub': neither sub.py beside the file nor installed"
    ],
    "python: 'os.path:join'": [],
    "python: 'os.path:no_such'": ["p.yaml:5:3: os.path has no function 'no_such'"],
}


@pytest.mark.parametrize("keys", NAMED)
def test_named_functions_are_checked_without_running_code(tmp_path: Path, keys: str) -> None:
    """Functions that a file names, and their arguments, are compared with the module's source text, so that a check
    runs no user code.
    """
    _written(tmp_path, "steps.py", FUNCTIONS)
    path = _file_of(tmp_path, keys)

    assert (_problems(path) if NAMED[keys] else load(path).bind_functions().steps[0].name) == (NAMED[keys] or "a.t")


def test_syntax_error_in_module_is_reported_without_running_it(tmp_path: Path) -> None:
    """A module with a syntax error is reported at its line, without being run."""
    _written(tmp_path, "steps.py", "def make(:")

    assert "steps.py:1: not Python" in _problems(_file_of(tmp_path, "python: 'steps:make'"))[0]


def test_modules_are_imported_by_binding_not_by_loading(tmp_path: Path) -> None:
    """Loading a YAML file imports no module; binding does, and reports exceptions."""
    marker = tmp_path / "was_run"
    _written(tmp_path, "steps.py", f"open({str(marker)!r}, 'w').close()\nraise RuntimeError('no')\ndef make(): ...")

    project = load(_file_of(tmp_path, "python: 'steps:make'"))

    assert not marker.exists()
    with pytest.raises(InvalidPipeline, match="steps can't be imported: RuntimeError: no"):
        project.bind_functions()
    assert marker.exists()


def test_modules_of_same_name_load_from_own_directory(tmp_path: Path) -> None:
    """Modules are searched in the pipeline's own directory first, also after another pipeline in the same process."""
    results = []
    for number in (1, 2, 1):
        directory = tmp_path / str(number)
        _written(directory, "steps.py", f"def make(): return {number}")
        body = load(_file_of(directory, "python: 'steps:make'")).bind_functions().steps[0].body
        assert isinstance(body, PythonStep)
        assert body.callable is not None
        results.append(body.callable())

    assert results == [1, 2, 1]


def test_binding_queries_imports_nothing() -> None:
    """Binding a pipeline of queries imports nothing."""
    queries: Pipeline = pipeline("p", catalog="m", steps=[step("a.t", sql="SELECT 1")])

    assert bind_functions(queries, Path()) is not None
    assert bind_functions(queries, Path()).steps[0].body == Sql(text="SELECT 1")
