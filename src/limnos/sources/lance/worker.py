"""A process that reads Lance tables: `python -m limnos.sources.lance.worker`, standard input is a socket to who started it.

May import this room and `model`. It is spawned, never forked, with no secret in its environment: what a table's storage needs comes with
each question.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from limnos.model.errors import LimnosError, NotFound
from limnos.sources.lance import questions
from limnos.sources.wire import serve


def _describe(text: bytes) -> bytes:
    from limnos.sources.lance.reading import describe  # noqa: PLC0415 - the extra `lance` may be missing, which is told

    return msgspec.json.encode(describe(msgspec.json.decode(text, type=questions.Describe)))


WORK: dict[str, Callable[[bytes], bytes]] = {questions.DESCRIBE: _describe}


def done(parts: list[bytes]) -> list[bytes]:
    """Answer one question: `done` and the answer, `refused` with a code and words, or `failed` with the words alone."""
    try:
        return [b"done", WORK[parts[0].decode()](parts[1])]
    except LimnosError as error:
        return [b"refused", code_of(error).encode(), error.message.encode(errors="replace")]
    except ImportError as error:
        return [
            b"refused",
            b"unsupported",
            f"This server cannot read Lance tables ({error}): install its extra lance".encode(),
        ]
    except Exception as error:  # noqa: BLE001 - told to whoever asked, who logs it
        return [b"failed", f"{type(error).__name__}: {error}".encode(errors="replace")]


def code_of(error: LimnosError) -> str:
    """The code of a failure; for what was not found with its kind behind it."""
    return f"{error.code}:{error.kind}" if isinstance(error, NotFound) else error.code


if __name__ == "__main__":
    serve(done)
