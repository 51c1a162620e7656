"""A real Prometheus that scrapes what it is told to, four times a second, and ``promtool``, which knows the rules."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.services.servers.debian import program, running
from tests.services.servers.process import free_port

Series = dict[tuple[str, ...], float]


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, *labels: str) -> Series:
        """Give the values of an instant query, by the values of these labels."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
        return {tuple(one["metric"].get(label, "") for label in labels): float(one["value"][1]) for one in result}

    def wait_for(self, expression: str, *labels: str, until: Callable[[Series], bool]) -> Series:
        """Give what ``query`` does once it is as it should be, or after 30 s."""
        end = time.monotonic() + 30
        while not until(found := self.query(expression, *labels)) and time.monotonic() < end:
            time.sleep(0.1)
        return found


@contextmanager
def running_prometheus(folder: Path, ports: Sequence[int]) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes 127.0.0.1 at these ports, whoever is or will be there. It begins after 5 s."""
    command = program("prometheus", "prometheus")
    own_port = free_port()
    job = {
        "job_name": "balog",
        "scrape_interval": "250ms",
        "scrape_timeout": "250ms",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))  # JSON is YAML
    options = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{own_port}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{own_port}"
    with running([command, *options], folder, f"{url}/-/ready"):
        yield Prometheus(url)


def lint(text: str) -> str:
    """Give what ``promtool check metrics`` finds fault with; "" is nothing."""
    command = [program("promtool", "prometheus"), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).strip() or ("" if done.returncode == 0 else f"exit code {done.returncode}")
