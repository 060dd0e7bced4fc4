# SPDX-License-Identifier: Apache-2.0
"""The run of `plain.py` from Airflow: a task that calls the command line, once a day.

Airflow's machine needs `limnos` on its PATH and LIMNOS_URI and LIMNOS_TOKEN_FILE in its environment. A killed task is
retried; `pipeline run` then waits until the lease of the killed run expires, or a user continues it with `limnos
pipeline resume RUN`. Exit code 10 is invalid data: a retry would not help, so the task is skipped, and `limnos pipeline
show RUN` lists the findings.
"""

from __future__ import annotations

import shlex

BROKEN_DATA = 10
COMMAND = ("limnos", "pipeline", "run", "pipeline.yaml", "--param", "day={{ ds }}", "--wait", "60", "--output", "json")
"""The task's command; Airflow inserts the day."""


def script() -> str:
    """Return the command for a shell. Exit code 99 tells Airflow to skip the task and not to retry it."""
    return f"{shlex.join(COMMAND)} || {{ code=$?; [ $code -eq {BROKEN_DATA} ] && exit 99; exit $code; }}"


def dag() -> object:
    """Return the DAG; Airflow finds it by the name below."""
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG

    with DAG(dag_id="nyc_flights", schedule="@daily", catchup=False) as flights_dag:
        BashOperator(task_id="publish", bash_command=script(), append_env=True, retries=2)
    return flights_dag


try:
    nyc_flights = dag()
except ModuleNotFoundError:  # imported without Airflow, as by its tests
    nyc_flights = None
