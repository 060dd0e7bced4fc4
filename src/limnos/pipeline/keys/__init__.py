"""The keys of a pipeline's file: what may be written where, what it is for, and what it becomes.

Job: the tables from which a file is read, its JSON Schema made and its reference page written, as shapes that build the
values of `declaration`. May import this room's values; it must not know of Spark nor of servers.
"""

from __future__ import annotations

from limnos.pipeline.keys.document import FILE

__all__ = ["FILE"]
