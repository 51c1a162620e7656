"""A real Prometheus Alertmanager that notifies a webhook at once."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.services.servers.debian import program, running
from tests.services.servers.process import CACHE, free_port

_TEMPLATES = "/usr/share/prometheus/alertmanager"


class Alertmanager:
    """An Alertmanager that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def active(self) -> dict[str, dict[str, Any]]:
        """Return the alerts that fire, by their label ``key``."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            alerts = json.load(answer)
        found = {alert["labels"]["key"]: alert for alert in alerts}
        assert len(found) == len(alerts), "an alert is there twice"
        return found


@contextmanager
def running_alertmanager(folder: Path, webhook: str, port: int = 0) -> Iterator[Alertmanager]:
    """Run an Alertmanager in a folder, which has its silences and the log of its notifications."""
    folder.mkdir(exist_ok=True)
    command = _runnable(program("prometheus-alertmanager", "prometheus-alertmanager"), folder)
    port = port or free_port()
    route = {"receiver": "hook", "group_by": ["key"], "group_wait": "0s", "group_interval": "1s"}
    receiver = {"name": "hook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
    (folder / "alertmanager.yml").write_text(json.dumps({"route": route, "receivers": [receiver]}))  # JSON is YAML
    options = [
        "--config.file=alertmanager.yml",
        "--storage.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with running([command, *options], folder, f"{url}/-/ready"):
        yield Alertmanager(url)


def _runnable(command: str, folder: Path) -> str:
    """Return a program that finds its templates, whose folder is constant in Debian's.

    Where the package is only unpacked, that is a copy for which the templates are in the folder that it runs in.
    """
    if Path(_TEMPLATES).exists():
        return command
    copy = folder / "alertmanager"
    if not copy.exists():
        for template in (CACHE / "debian" / _TEMPLATES[1:]).glob("*.tmpl"):
            (folder / template.name).write_bytes(template.read_bytes())
        here = ".".ljust(len(_TEMPLATES), "/")  # the length must stay
        copy.write_bytes(Path(command).read_bytes().replace(_TEMPLATES.encode(), here.encode()))
        copy.chmod(0o755)
    return str(copy)
