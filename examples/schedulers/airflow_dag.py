"""The same from Airflow: a task that calls the command line, one a day.

Airflow's machine needs `limnos` on its PATH and LIMNOS_URI and LIMNOS_TOKEN_FILE in its environment. A task that
is killed is tried again; `pipeline run` then waits for the lease of the run that was killed to end, or `limnos
pipeline resume RUN` goes on with it by hand. Exit code 10 is broken data: trying again would not help, so the task
is skipped, and `limnos pipeline show RUN` says what was found.
"""

from __future__ import annotations

import shlex

BROKEN_DATA = 10
COMMAND = ("limnos", "pipeline", "run", "pipeline.yaml", "--param", "day={{ ds }}", "--wait", "60", "--output", "json")
"""What the task runs; Airflow puts the day in."""


def script() -> str:
    """The command for a shell. Exit code 99 tells Airflow to skip the task and not to try again."""
    return f"{shlex.join(COMMAND)} || {{ code=$?; [ $code -eq {BROKEN_DATA} ] && exit 99; exit $code; }}"


def dag() -> object:
    """The DAG; Airflow finds it by the name below."""
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG

    with DAG(dag_id="nyc_flights", schedule="@daily", catchup=False) as made:
        BashOperator(task_id="publish", bash_command=script(), append_env=True, retries=2)
    return made


try:
    nyc_flights = dag()
except ModuleNotFoundError:  # read without Airflow, as its tests do
    nyc_flights = None
