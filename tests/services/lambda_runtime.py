"""The API of AWS Lambda's runtime, which freezes and kills the process of a function as the service does.

It follows "Using the Lambda runtime API for custom runtimes" of AWS's documentation.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PATH = "/2018-06-01/runtime/invocation"


class LambdaRuntime:
    """Serves invocations one after the other, and freezes the process between them.

    Args:
        payloads: the events of the invocations.
        when_frozen: called while the process is stopped by SIGSTOP, with the number of finished invocations.

    Attributes:
        answers: the kind (``response`` or ``error``) and the body of each finished invocation.
        pid: the process to freeze; set it after its start.
    """

    def __init__(self, payloads: list[Any], when_frozen: Callable[[int], None]) -> None:
        self.answers: list[tuple[str, Any]] = []
        self.pid = 0
        self._payloads = payloads
        self._when_frozen = when_frozen
        runtime = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                runtime._freeze()
                number = len(runtime.answers)
                if number == len(runtime._payloads):
                    os.kill(runtime.pid, signal.SIGKILL)  # an environment ends without notice
                    self.close_connection = True
                    return
                headers = {
                    "Lambda-Runtime-Aws-Request-Id": f"request-{number}",
                    "Lambda-Runtime-Deadline-Ms": str(int((time.time() + 10) * 1000)),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:123456789012:function:resize",
                    "Content-Type": "application/json",
                }
                self._send(200, json.dumps(runtime._payloads[number]).encode(), headers)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                runtime.answers.append((self.path.rpartition("/")[2], json.loads(body)))
                self._send(202, b"{}", {})

            def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _freeze(self) -> None:
        while not self.pid:
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGSTOP)
        try:
            self._when_frozen(len(self.answers))
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
