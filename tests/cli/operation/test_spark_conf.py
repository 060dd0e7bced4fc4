# SPDX-License-Identifier: Apache-2.0
"""Settings of Spark on a command line."""

from __future__ import annotations

import pytest

from limnos.cli.failures import UsageError
from limnos.cli.operation.spark_conf import spark_conf


def test_settings_are_split_at_the_first_sign() -> None:
    """A value may have the sign itself; without the flag there are no settings."""
    assert spark_conf(["spark.cores.max=2", "spark.driver.extraJavaOptions=-Da=b"]) == {
        "spark.cores.max": "2",
        "spark.driver.extraJavaOptions": "-Da=b",
    }
    assert spark_conf(None) == {}


@pytest.mark.parametrize("text", ["spark.cores.max", "=2", ""])
def test_other_forms_are_usage_errors(text: str) -> None:
    """A text without a key or a sign is refused with an example."""
    with pytest.raises(UsageError, match=r"write KEY=VALUE, as spark\.cores\.max=2"):
        spark_conf([text])
