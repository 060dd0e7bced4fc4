# SPDX-License-Identifier: Apache-2.0
"""Sources of a pipeline as DataFrames: files, tables, databases, Python functions, topics, streams.

`frame_of` opens a declared source: its rows, a pin of the exact version that was read, and malformed rows.
"""

from __future__ import annotations

from limnos.pipeline.engine.sources.opening import frame_of, has_changed, look_up_topics, pin_of
from limnos.pipeline.engine.sources.values import MalformedRows, SourceRead, SourceReadRequest

__all__ = ["MalformedRows", "SourceRead", "SourceReadRequest", "frame_of", "has_changed", "look_up_topics", "pin_of"]
