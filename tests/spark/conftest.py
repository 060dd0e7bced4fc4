# SPDX-License-Identifier: Apache-2.0
"""The Spark without a server that tests of the pipeline engine use, where the room `pipelines` is installed."""

from tests.installed import has_room

if has_room("pipelines"):
    from tests.pipeline.engine.conftest import here

    __all__ = ["here"]
