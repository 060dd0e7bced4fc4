# SPDX-License-Identifier: Apache-2.0
"""Topics of Kafka as sources: offsets, brokers, formats of values, the schema registry.

`topic_frame` opens a topic between pinned offsets, and `pin_topic` pins them at a run's start.
"""

from __future__ import annotations

from limnos.pipeline.engine.sources.topics.reading import look_up_topic, pin_topic, topic_frame

__all__ = ["look_up_topic", "pin_topic", "topic_frame"]
