"""A real OpenTelemetry Collector, built from its own Go modules: OTLP over HTTP in, OTLP's JSON out to a receiver."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.servers.process import CACHE, ServerProcess, accepts, free_port

__all__ = ["MAX_BODY", "running"]

MAX_BODY = 1 << 20
"""Bytes of a request that this collector takes."""

_SOURCE = Path(__file__).parent
_CONFIG = """\
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{port}", max_request_body_size: {max_body}}}
exporters:
  otlp_http:
    endpoint: "{forward}"
    encoding: json
    compression: none
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    logs: {{receivers: [otlp], exporters: [otlp_http]}}
    metrics: {{receivers: [otlp], exporters: [otlp_http]}}
"""


def built() -> Path:
    """Give the program, built where it is not yet (a minute or two); skip where it can't be."""
    state = hashlib.sha256(b"".join((_SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")))
    program = CACHE / f"collector-{state.hexdigest()[:12]}"
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    made = program.with_suffix(f".{os.getpid()}")
    command = ["go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", str(made), "."]
    done = subprocess.run(command, cwd=_SOURCE, capture_output=True, text=True, timeout=900)
    if done.returncode:
        pytest.skip(f"go can't build the collector: {done.stderr[-500:]}")
    made.replace(program)
    return program


@contextmanager
def running(folder: Path, forward: str) -> Iterator[str]:
    """Run a collector that hands on what it takes before it answers; give its URL."""
    program = built()
    port = free_port()
    config = folder / "collector.yaml"
    config.write_text(_CONFIG.format(port=port, forward=forward, max_body=MAX_BODY))
    process = ServerProcess()
    process.start([str(program), "--config", str(config)], folder, lambda: accepts(port))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()
