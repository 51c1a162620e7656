"""How every topic is shared by processes, threads and forked children."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter

import pytest

from balog.testing.contracts.abilities import needs
from balog.testing.contracts.topic_fixtures import TopicFixtures, ack, ids, messages, take
from balog.testing.contracts.topic_processes import consume_in_process, publish_in_process
from balog.topics import Message, Topic, Topics


class SharingContract(TopicFixtures):
    """Several processes, threads and forked children on one topic."""

    @needs("shares_with_processes")
    def test_several_processes_handle_each_message_once(self, url: str, name: str, backend: Topics) -> None:
        wanted = [f"m{number}" for number in range(self.shared_messages)]
        half = self.shared_messages // 2
        overlap = 50 if backend.topic(name).keeps_ids else 0  # ids in both shares: stored once
        shares = [wanted[: half + overlap], wanted[half - overlap :]]
        context = multiprocessing.get_context("spawn")
        over, handled = context.Event(), context.Queue()
        publishers = [context.Process(target=publish_in_process, args=(url, name, share)) for share in shares]
        consumers = [context.Process(target=consume_in_process, args=(url, name, over, handled)) for _ in range(3)]
        for process in (*publishers, *consumers):
            process.start()
        seen: Counter[str] = Counter()
        while len(seen) < len(wanted):
            seen.update(handled.get(timeout=120))
        for process in publishers:
            process.join()
        over.set()
        while any(process.is_alive() for process in consumers) or not handled.empty():
            if not handled.empty():  # a child ends when what it put was taken
                seen.update(handled.get())
            time.sleep(0.001)
        assert [process.exitcode for process in (*publishers, *consumers)] == [0] * 5
        assert set(seen) == set(wanted)
        if self.delivers_once:
            assert seen == Counter(wanted)

    def test_several_threads_share_a_topic(self, topic: Topic) -> None:
        wanted = [f"m{number}" for number in range(300)]
        handled: list[str] = []
        topic.publish(messages("first"))
        ack(topic, take(topic, 1))
        deadline = time.monotonic() + 120

        def publish(share: list[str]) -> None:
            for id in share:
                topic.publish(messages(id))

        def consume() -> None:
            while len(handled) < len(wanted) and time.monotonic() < deadline:
                received = topic.receive("g", limit=5, wait=0.05, lease=60)
                handled.extend(ids(received))
                topic.ack("g", received)

        threads = [threading.Thread(target=publish, args=(wanted[i::2],)) for i in range(2)]
        threads += [threading.Thread(target=consume) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=150)
        assert Counter(handled) == Counter(wanted)

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    @needs("survives_fork")
    def test_a_forked_child_and_its_parent_share_a_topic(self, topic: Topic) -> None:

        def publish(id: str) -> int:
            return topic.publish([Message(id, b"", self.key_of(id))])

        publish("before")
        over = threading.Event()
        published = 0

        def keep_busy() -> None:
            nonlocal published
            while not over.is_set():
                published += publish(f"busy{published}")

        thread = threading.Thread(target=keep_busy)
        thread.start()
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    assert publish(f"child{number}") == 1
                    if topic.keeps_groups:
                        assert take(topic, 1, f"g{number}")[0].id == "before"
                    topic.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        over.set()
        thread.join()
        assert statuses == [0] * 5
        publish("after")
        everything = ids(take(topic, published + 7, "parent"))
        assert {"before", "after", *(f"child{number}" for number in range(5))} <= set(everything)
        assert len(everything) == len(set(everything)) == published + 7
