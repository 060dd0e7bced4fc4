# SPDX-License-Identifier: Apache-2.0
"""The Spark without a server that tests of the pipeline engine use."""

from tests.pipeline.engine.conftest import here

__all__ = ["here"]
