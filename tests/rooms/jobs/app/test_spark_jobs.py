# SPDX-License-Identifier: Apache-2.0
"""Jobs of Spark templates on a real Spark: confined, with the correct final state, and stopped when they are
cancelled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.confinement.landlock import version
from tests.rooms.jobs.app.test_executor import RUNS, TEMPLATES, Lake, lake

__all__ = ["lake"]
pytestmark = [pytest.mark.spark, pytest.mark.heavy]
APPLICATION = """
import os, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("sum", spark.range(int(sys.argv[1])).groupBy().sum().first()[0], spark.conf.get("spark.app.name"), os.environ["LIMNOS_JOB_ID"])
print("files", spark.read.text(sys.argv[2]).count())
try:
    spark.read.text(sys.argv[3]).count()
except Exception as error:
    print("closed", type(error).__name__)
spark.stop()
"""


def test_spark_application_runs_with_its_arguments_and_files(lake: Lake, tmp_path: Path) -> None:
    """An application has its arguments, files and properties, can read the files of its job and not the server's data,
    and its output is stored.
    """
    (lake.programs / "app.py").write_text(APPLICATION)
    (lake.programs / "rows.txt").write_text("a\nb\nc\n")
    template = {
        "jobType": "spark",
        "name": "app",
        "comment": None,
        "executable": str(lake.programs / "app.py"),
        "arguments": ["{{rows}}", str(lake.programs / "rows.txt"), str(lake.node.data / "admin.token")],
        "configs": {"spark.app.name": "{{name:-mine}}", "spark.sql.shuffle.partitions": "1"},
    }
    answer = lake.node.post(TEMPLATES, {"jobTemplate": template})
    assert answer.status == 200, answer.body
    response = lake.node.post(RUNS, {"jobTemplateName": "app", "jobConf": {"rows": "101"}})
    assert response.status == 200, response.body
    job = response.json()["job"]["jobId"]

    ended_job = lake.run(job, timeout_s=1500.0)

    assert (ended_job["state"], ended_job["exit_code"]) == ("succeeded", 0), ended_job["stderr"]
    assert f"sum 5050 mine {job}" in ended_job["stdout"]
    assert "files 3" in ended_job["stdout"]
    assert ("closed" in ended_job["stdout"]) is (version() > 0), "as far as the kernel can confine it"
