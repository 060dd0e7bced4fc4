# SPDX-License-Identifier: Apache-2.0
"""Pipelines written in Python, with the decorators `step` and `pipeline`.

Builds the same declaration as a pipeline file, with the same keys and the same errors. `bound` imports the functions
that a definition names. A decorated function stays unchanged, so a test can call it with DataFrames. Must not know
Spark.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from limnos.pipeline.declaration import Pipeline, PythonStep, StepDeclaration
from limnos.pipeline.declared_values import Scalar, SourcePosition
from limnos.pipeline.directory import FunctionArgument, PipelineDirectory
from limnos.pipeline.keys import FILE
from limnos.pipeline.keys.document import build_pipeline
from limnos.pipeline.keys.steps import FUNCTION_STEP, STEP, StepDraft
from limnos.pipeline.modules import enter_directory, import_module
from limnos.pipeline.node_schemas import InvalidNode, NodeSite, ProblemNotes, TableName
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.source_declarations import DeclaredSource, PythonSource
from limnos.pipeline.yaml import ListNode, MapNode, ScalarNode, YamlNode

StepFunction = Callable[..., object]
F = TypeVar("F", bound=StepFunction)
_DECLARED = "__limnos_step__"
_StepKeys = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStep:
    """The arguments of a call of `step`: its table, its keys, and the function that computes its rows, if any."""

    table: str
    keys: _StepKeys
    at: SourcePosition
    function: StepFunction | None = None

    def __call__(self, function: F) -> F:
        """Attach the declaration to a function and return the same function. Raises InvalidPipeline for a step with a
        query.
        """
        if any(key in self.keys for key in ("sql", "sql_file", "load")):
            raise InvalidPipeline(
                [Problem(f"step {self.table} has its query: leave the function undecorated", self.at)]
            )
        setattr(function, _DECLARED, dataclasses.replace(self, function=function, at=_place_of(function, self.at)))
        return function


def step(table: str, /, **keys: object) -> DeclaredStep:
    """Declare a step. The keyword arguments are the keys of the file: `write`, `expect`, `partition` and so on.

    Used as a decorator on a function from DataFrames to a DataFrame. With `sql`, `sql_file` or `load` the result itself
    is the step to pass to `pipeline`. `inputs` maps the function's arguments to sources; by default each argument is
    the source with its name.
    """
    return DeclaredStep(table=table, keys=keys, at=_caller())


def pipeline(
    name: str,
    /,
    *,
    catalog: str,
    steps: Sequence[DeclaredStep | StepFunction],
    parameters: Mapping[str, object] | None = None,
    sources: Mapping[str, object] | None = None,
    python_files: Sequence[str] = (),
    environments: Mapping[str, object] | None = None,
    schedule: Mapping[str, object] | None = None,
    comment: str | None = None,
) -> Pipeline:
    """Build the declaration of a pipeline from decorated functions and other steps, in any order.

    A source may be a function. Raises InvalidPipeline with all problems.
    """
    at = _caller()
    functions = {key: value for key, value in (sources or {}).items() if callable(value)}
    entries: dict[str, object] = {"pipeline": name, "catalog": catalog, "comment": comment, "parameters": parameters}
    entries |= {
        "sources": {k: v for k, v in (sources or {}).items() if k not in functions},
        "python_files": python_files,
        "environments": environments,
        "schedule": schedule,
    }
    notes = ProblemNotes(PipelineDirectory(_directory(at)))
    values = _read_keys({key: value for key, value in entries.items() if value}, at, notes=notes)
    values["steps"] = tuple(position for one in steps if (position := _step_of(one, at, notes=notes)) is not None)
    if not steps:
        notes.add("a pipeline needs at least one step: give them as 'steps'", at)
    if notes.problems:
        raise InvalidPipeline(notes.problems)
    result = build_pipeline(values, NodeSite(MapNode(at=at), notes))
    if notes.problems:
        raise InvalidPipeline(notes.problems)
    return dataclasses.replace(result, sources=(*result.sources, *_function_sources(functions, at)))


def bind_functions(declaration: Pipeline, directory: Path) -> Pipeline:
    """Return the declaration with its functions imported; the directory takes precedence over installed modules.

    Modules of the directory are imported again, so that changed files are noticed.

    Raises InvalidPipeline for a function that cannot be imported.
    """
    problems: list[Problem] = []
    bodies = [step.body for step in declaration.steps] + [source.kind for source in declaration.sources]
    embeddings = [step.embed for step in declaration.steps if step.embed is not None]
    functions = [*(one for one in bodies if isinstance(one, (PythonStep, PythonSource))), *embeddings]
    if functions:
        enter_directory(directory, again=any(one.callable is None for one in functions))
    steps = tuple(_bound_step(one, directory, problems=problems) for one in declaration.steps)
    sources = tuple(_bound_source(one, directory, problems=problems) for one in declaration.sources)
    if problems:
        raise InvalidPipeline(problems)
    environment = declaration.environment
    if environment is not None:
        production = _with_functions(environment.production, steps=steps, sources=sources)
        environment = dataclasses.replace(environment, production=production)
    return dataclasses.replace(declaration, steps=steps, sources=sources, environment=environment)


def _with_functions(
    production: Pipeline, *, steps: tuple[StepDeclaration, ...], sources: tuple[DeclaredSource, ...]
) -> Pipeline:
    """Return the declaration of the file with the functions of its translation for an environment."""
    pairs = zip(production.sources, sources, strict=True)
    return dataclasses.replace(
        production,
        steps=tuple(
            dataclasses.replace(production_step, body=one.body, embed=one.embed)
            for production_step, one in zip(production.steps, steps, strict=True)
        ),
        sources=tuple(one if isinstance(one.kind, PythonSource) else production_step for production_step, one in pairs),
    )


def load(path: Path) -> Pipeline:
    """Run a Python file and return its pipeline: the only value of its module that `pipeline` returned.

    Raises InvalidPipeline if the file raises an exception, or has no pipeline or several.
    """
    enter_directory(path.parent, again=True)
    try:
        module = import_module(path.stem, path.parent.absolute())
    except InvalidPipeline:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidPipeline([_exception_problem(error, path)]) from error
    pipelines = {id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}
    if len(pipelines) != 1:
        text = "declares no pipeline: end it with 'p = pipeline(…)'" if not pipelines else "declares several pipelines"
        raise InvalidPipeline(
            [Problem(f"the file {text}; a file must declare one pipeline", SourcePosition(str(path), 1, 1))]
        )
    return next(iter(pipelines.values()))


def _read_keys(entries: _StepKeys, at: SourcePosition, *, notes: ProblemNotes) -> dict[str, object]:
    """Parse each key with the same schema as in a file."""
    values: dict[str, object] = {}
    for name, value in entries.items():
        try:
            values[name] = FILE.keys[name].value_schema.read(_node(value, at), notes)
        except InvalidNode:
            continue
    return values


def _step_of(
    one: DeclaredStep | StepFunction, at: SourcePosition, *, notes: ProblemNotes
) -> tuple[object, StepDraft, SourcePosition] | None:
    declared = one if isinstance(one, DeclaredStep) else getattr(one, _DECLARED, None)
    if not isinstance(declared, DeclaredStep):
        notes.add(f"{getattr(one, '__name__', one)} is not a step: decorate it with @step('namespace.table')", at)
        return None
    try:
        parts = TableName().read(_node(declared.table, declared.at), notes)
        return parts, _draft(declared, notes), declared.at
    except InvalidNode:
        return None


def _draft(declared: DeclaredStep, notes: ProblemNotes) -> StepDraft:
    node = _node(declared.keys, declared.at)
    if declared.function is None:
        draft = STEP.read(node, notes)
        if not isinstance(draft, StepDraft):
            raise InvalidNode
        return draft
    values = FUNCTION_STEP.read(node, notes)
    body = PythonStep(
        function=_reference(declared.function), inputs=values.get("inputs", {}), callable=declared.function
    )
    return StepDraft(values=values, body=body, arguments=_arguments(declared.function))


def _arguments(function: StepFunction) -> tuple[FunctionArgument, ...]:
    parameters = inspect.signature(function).parameters.values()
    plain = (one for one in parameters if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD})
    return tuple(FunctionArgument(one.name, required=one.default is one.empty) for one in plain)


def _function_sources(functions: Mapping[str, StepFunction], at: SourcePosition) -> tuple[DeclaredSource, ...]:
    return tuple(
        DeclaredSource(name=name, kind=PythonSource(function=_reference(one), callable=one), at=_place_of(one, at))
        for name, one in functions.items()
    )


def _reference(function: StepFunction) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', 'function')}"


def _node(value: object, at: SourcePosition) -> YamlNode:
    """Convert a Python value to a node of a file, at the position of the call that passed it."""
    if isinstance(value, Mapping):
        entries = [(_text(str(key), at), _node(each, at)) for key, each in value.items()]
        return MapNode(at=at, entries=entries)
    if isinstance(value, (list, tuple)):
        return ListNode(at=at, items=[_node(each, at) for each in value])
    scalar: Scalar = value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
    return ScalarNode(at=at, text=str(value), value=scalar, text_at=at)


def _text(text: str, at: SourcePosition) -> ScalarNode:
    return ScalarNode(at=at, text=text, value=text, text_at=at)


def _bound_step(one: StepDeclaration, directory: Path, *, problems: list[Problem]) -> StepDeclaration:
    embed = one.embed
    if embed is not None and embed.callable is None:
        model = None if embed.model is None else _function(embed.model, directory, at=one.at, problems=problems)
        function = _function(embed.function, directory, at=one.at, problems=problems)
        one = dataclasses.replace(one, embed=dataclasses.replace(embed, callable=function, model_callable=model))
    body = one.body
    if not isinstance(body, PythonStep) or body.callable is not None:
        return one
    function = _function(body.function, directory, at=one.at, problems=problems)
    return dataclasses.replace(one, body=dataclasses.replace(body, callable=function))


def _bound_source(one: DeclaredSource, directory: Path, *, problems: list[Problem]) -> DeclaredSource:
    kind = one.kind
    if not isinstance(kind, PythonSource) or kind.callable is not None:
        return one
    function = _function(kind.function, directory, at=one.at, problems=problems)
    return dataclasses.replace(one, kind=dataclasses.replace(kind, callable=function))


def _function(
    reference: str, directory: Path, *, at: SourcePosition | None, problems: list[Problem]
) -> StepFunction | None:
    module, _, name = reference.partition(":")
    try:
        result: object = getattr(import_module(module, directory), name, None)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a module does while it is imported)
        problems.append(Problem(f"{module} can't be imported: {type(error).__name__}: {error}", at))
        return None
    if not callable(result):
        problems.append(Problem(f"{module} has no function '{name}'", at))
        return None
    return result


def _caller() -> SourcePosition:
    """Return the position outside this module from which its function was called."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if frame is None:
        return SourcePosition("<python>", 1, 1)
    return SourcePosition(frame.f_code.co_filename, frame.f_lineno, 1)


def _place_of(function: StepFunction, otherwise: SourcePosition) -> SourcePosition:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return otherwise if code is None else SourcePosition(code.co_filename, code.co_firstlineno, 1)


def _directory(at: SourcePosition) -> Path:
    """Return the directory of the calling file; for a notebook or a console the working directory."""
    path = Path(at.file)
    return path.parent if path.is_file() else Path.cwd()


def _exception_problem(error: BaseException, path: Path) -> Problem:
    """Describe an exception of a file, at the last line of that file in the traceback."""
    line = 1
    if isinstance(error, SyntaxError) and error.filename == str(path.absolute()):
        return Problem(f"not Python: {error.msg}", SourcePosition(str(path), error.lineno or 1, error.offset or 1))
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == path.name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return Problem(f"{type(error).__name__}: {error}", SourcePosition(str(path), line, 1))
