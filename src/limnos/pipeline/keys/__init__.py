# SPDX-License-Identifier: Apache-2.0
"""The keys of a pipeline's file: their schemas, descriptions and resulting values.

These definitions determine the parsing of a file, its JSON Schema and its reference page. The schemas (`NodeSchema`)
build the values of `declaration`. Must not know Spark or servers.
"""

from __future__ import annotations

from limnos.pipeline.keys.document import FILE

__all__ = ["FILE"]
