"""Run tasks of ``orders.py`` by Airflow's own supervisor, which forks a process for each; arguments are task ids.

The API server is the only part that is not Airflow's: a transport that starts every task and accepts its state.
"""

import sys
import uuid
from typing import Any

import httpx
from airflow.sdk.api.client import Client
from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
from airflow.sdk.execution_time.supervisor import supervise_task

WHEN = "2026-01-01T00:00:00Z"
RUN: dict[str, Any] = {
    "dag_id": "orders",
    "run_id": "manual-1",
    "run_type": "manual",
    "state": "running",
    "logical_date": WHEN,
    "start_date": WHEN,
    "run_after": WHEN,
    "end_date": None,
    "data_interval_start": None,
    "data_interval_end": None,
    "partition_key": None,
    "clear_number": 0,
    "conf": {},
    "consumed_asset_events": [],
}
START = {"dag_run": RUN, "max_tries": 0, "should_retry": False, "task_reschedule_count": 0}


def answer(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json=START if request.url.path.endswith("/run") else {"ok": True})


for task_id in sys.argv[1:]:
    supervise_task(
        ti=TaskInstance(
            id=uuid.uuid4(),
            task_id=task_id,
            dag_id="orders",
            run_id="manual-1",
            try_number=2,
            dag_version_id=uuid.uuid4(),
        ),
        bundle_info=BundleInfo(name="dags-folder"),
        dag_rel_path="orders.py",
        token="",
        client=Client(base_url=None, dry_run=True, token="", transport=httpx.MockTransport(answer)),
        log_path=f"{task_id}.log",
    )
