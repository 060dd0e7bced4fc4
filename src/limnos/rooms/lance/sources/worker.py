# SPDX-License-Identifier: Apache-2.0
"""The worker process for Lance tables, `python -m limnos.rooms.lance.sources.worker`; standard input is a socket to the
server.

Must not know requests of the protocol. It is spawned, never forked, with no secret in its environment: storage options
come with each request. Lance's library is loaded at the first request (`START`), whose result reports a missing
library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from limnos.model.errors import AlreadyExists, LimnosError, NotFound
from limnos.model.extras import missing_lance_text
from limnos.rooms.lance.formats.expressions import check_expression
from limnos.rooms.lance.sources import maintenance_questions, questions
from limnos.rooms.lance.sources.callbacks import CallbackWire
from limnos.sources.wire import Wire, die_with_parent, serve_on


class QuestionHandlers(NamedTuple):
    """The handlers of requests by name: handlers without a body, handlers with a body, and handlers that return a
    stream.
    """

    plain: dict[str, tuple[type, Callable[[Any], object]]]
    fed: dict[str, tuple[type, Callable[[Any, Any], object]]]
    in_pieces: dict[str, tuple[type, Callable[[Any, Callable[[list[bytes]], None]], None]]]


@cache
def question_handlers() -> QuestionHandlers:
    """Import Lance's library, and return the handlers of all requests by name. Raises ImportError."""
    from limnos.rooms.lance.sources import (  # noqa: PLC0415 - the extra `lance` may be missing
        directories,
        indices,
        maintenance,
        mutations,
        previewing,
        querying,
        reading,
        references,
        writing,
    )

    plain: tuple[tuple[type, Callable[[Any], object]], ...] = (
        (questions.Describe, reading.describe),
        (questions.Contents, directories.list_directory),
        (questions.Count, reading.count),
        (questions.Stats, reading.stats),
        (questions.Head, previewing.head),
        (questions.Transaction, reading.transaction),
        (questions.Explain, querying.explain),
        (questions.Update, mutations.update),
        (questions.Delete, mutations.delete),
        (questions.Restore, mutations.restore),
        (questions.SchemaMetadata, mutations.schema_metadata),
        (questions.FieldMetadata, mutations.field_metadata),
        (questions.AddColumns, mutations.add_columns),
        (questions.AlterColumns, mutations.alter_columns),
        (questions.DropColumns, mutations.drop_columns),
        (questions.CreateIndex, indices.create),
        (questions.DropIndex, indices.drop),
        (questions.ListIndices, indices.list_indices),
        (questions.IndexStats, indices.stats),
        (questions.References, references.references),
        (questions.TagPut, references.tag_put),
        (questions.TagDrop, references.tag_drop),
        (questions.BranchMake, references.branch_make),
        (questions.BranchDrop, references.branch_drop),
        (maintenance_questions.ReadState, maintenance.read_state),
        (maintenance_questions.Compact, maintenance.compact),
        (maintenance_questions.RefreshIndexes, maintenance.refresh_indexes),
        (maintenance_questions.CleanUp, maintenance.clean_up),
    )
    return QuestionHandlers(
        plain={shape.__name__: (shape, function) for shape, function in plain},
        fed={
            "Write": (questions.Write, writing.write),
            "Merge": (questions.Merge, mutations.merge),
            "AddFields": (questions.AddFields, mutations.add_fields),
        },
        in_pieces={"Query": (questions.Query, querying.query)},
    )


def answer(wire: Wire) -> None:
    """Answer one request, and discard the remaining chunks of its body."""
    name, text, *more = wire.receive()
    CallbackWire.wire = wire
    body = None
    if more:
        from limnos.rooms.lance.sources.bodies import BodyPieces  # noqa: PLC0415 - it needs pyarrow, which comes with the extra

        body = BodyPieces(wire)
    wire.send(_answer_of(name.decode(), text, body=body, wire=wire))
    if body is not None:
        body.drain()


def _answer_of(name: str, text: bytes, *, body: object, wire: Wire) -> list[bytes]:
    """Handle a request. Returns the response: `done` and the result, `refused`, a code and a message, or `failed` and a
    message.
    """
    try:
        return [b"done", msgspec.json.encode(_run(name, text, body=body, wire=wire))]
    except LimnosError as error:
        return [b"refused", code_of(error).encode(), error.message.encode(errors="replace")]
    except ImportError as error:
        return [b"refused", b"unsupported", f"{missing_lance_text()} ({error})".encode()]
    except BaseException as error:  # noqa: BLE001 - sent to the server, which logs it; a panic in Rust is not an Exception
        from limnos.rooms.lance.sources.library_errors import unfit_value_error  # noqa: PLC0415 - as the rest of the package, which is loaded with the library

        request = unfit_value_error(error)
        if request is not None:
            return [b"refused", code_of(request).encode(), request.message.encode(errors="replace")]
        return [b"failed", f"{type(error).__name__}: {error}".encode(errors="replace")]


def _run(name: str, text: bytes, *, body: object, wire: Wire) -> object:
    handlers = question_handlers()
    if name == questions.START.decode():
        return None
    if name in handlers.fed:
        shape, fed = handlers.fed[name]
        return fed(_decode_question(text, shape=shape), body)
    if name in handlers.in_pieces:
        shape, in_pieces = handlers.in_pieces[name]
        return in_pieces(_decode_question(text, shape=shape), wire.send)
    shape, plain = handlers.plain[name]
    return plain(_decode_question(text, shape=shape))


def _decode_question(text: bytes, *, shape: type) -> questions.LanceQuestion:
    """Decode a request. Raises BadRequest for an expression that would crash this process."""
    question: questions.LanceQuestion = msgspec.json.decode(text, type=shape)
    for each in questions.expressions_of(question):
        check_expression(each)
    return question


def code_of(error: LimnosError) -> str:
    """Return the code of an error; for NotFound and AlreadyExists with the kind appended: `not-found:table`."""
    return f"{error.code}:{error.kind}" if isinstance(error, NotFound | AlreadyExists) else error.code


if __name__ == "__main__":
    die_with_parent()
    serve_on(answer)
