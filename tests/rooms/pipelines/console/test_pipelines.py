# SPDX-License-Identifier: Apache-2.0
"""The page of a pipeline: results of its expectations."""

from __future__ import annotations

from limnos.rooms.pipelines.console.pipelines import FindingBody, _result_chip


def test_results_have_thousands_separators() -> None:
    """The numbers in the label of a result have thousands separators, as on other pages."""
    assert _result_chip(FindingBody(broken=1200, checked=336000)).text == "1\u202f200 of 336\u202f000"
