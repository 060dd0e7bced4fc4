# SPDX-License-Identifier: Apache-2.0
"""The SQL++ prompt and its session."""

from __future__ import annotations

from typing import Literal

ResultText = Literal["json-lines", "csv", "adm", "lossless-json"]
"""A format in which the server returns each result as one text."""
