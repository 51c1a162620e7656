"""Killed at any moment: every event reaches its endpoint, some twice, under the same id."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial

from tests.stand_ins.http_server import Answer
from tests.waiting import wait_for

CHILD = """
import sys, threading
from balog.service.jobs.callbacks import CallbackJob, job as job_module
from balog.service.document import Callback

job_module.LEASE = 0.5
job = CallbackJob(Callback(name="partner", source="orders", url=sys.argv[2], private=True), sys.argv[1], print)
job.start()
threading.Event().wait()
"""


def has_got(receiver, requests):
    return len(receiver.requests) >= requests


def test_each_event_is_posted_at_least_once(house, receiver):
    """Given a callback that is killed twice while it posts, then nothing is missing at its endpoint."""
    ids = house.numbered(800)
    receiver.respond = lambda request: (time.sleep(0.001), Answer())[1]
    for share in (200, 500):
        child = subprocess.Popen([sys.executable, "-c", CHILD, house.url, receiver.url])
        try:
            wait_for(partial(has_got, receiver, share))
            assert child.poll() is None
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
    assert house.group().pending > 0
    house.start(receiver.url)
    wait_for(lambda: house.group().pending == 0)
    times = Counter(request.headers["webhook-id"] for request in receiver.requests)
    assert set(times) == set(ids)
    assert max(times.values()) <= 3  # nobody sends again what is under a lease
    assert house.dead() == []
