"""The keys of a pipeline's file: their shapes, descriptions and resulting values.

Job: the tables from which a file is read, its JSON Schema is built and its reference page is written. Shapes build the
values of `declaration`. May import this room's values; it must not know of Spark nor of servers.
"""

from __future__ import annotations

from limnos.pipeline.keys.document import FILE

__all__ = ["FILE"]
