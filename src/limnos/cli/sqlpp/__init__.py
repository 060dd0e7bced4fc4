# SPDX-License-Identifier: Apache-2.0
"""The SQL++ prompt and its session.

May import the shared modules of `limnos.cli`, the packages before it, and the modules that those may import.
"""

from __future__ import annotations

from typing import Literal

ResultText = Literal["json-lines", "csv", "adm", "lossless-json"]
"""A format in which the server returns each result as one text."""
