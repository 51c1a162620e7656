"""Runs protoc in a child process with limits of time, memory and files."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import protovalidate
from google.protobuf import descriptor_pb2

from balog.common.text import printable
from balog.registry.schema import InvalidSchemaError

FILE = "schema.proto"
"""The name of the file among the compiled ones."""

MAX_SOURCE_BYTES = 1 << 20
MAX_SECONDS = 30
MAX_MEMORY = 2 << 30
_MAX_OUTPUT = 64 << 20

# argv: folder, then protoc's own arguments. The child sets its limits and then becomes protoc.
_CHILD = f"""
import resource, sys
def bound(kind, most):
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most, hard) if hard == resource.RLIM_INFINITY else (min(most, hard), hard))
bound(resource.RLIMIT_CPU, {MAX_SECONDS})
bound(resource.RLIMIT_FSIZE, {_MAX_OUTPUT})
if sys.platform == "linux":
    bound(resource.RLIMIT_AS, {MAX_MEMORY})
import os
import grpc_tools
from grpc_tools import protoc
sys.exit(protoc.main(sys.argv + ["-I" + os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")]))
"""
_COMPLAINT = re.compile(
    r"(?P<file>[^:]{1,300}\.proto):(?:(?P<place>\d+:\d+):)? (?!warning: )(?P<reason>.*)", re.IGNORECASE
)
_MAX_REASON = 300


def run_protoc(source: bytes) -> descriptor_pb2.FileDescriptorSet:
    """Compile a file. Return it with all its imports, dependencies first.

    Raises:
        InvalidSchemaError: the file is larger than 1 MiB, protoc rejects it, or protoc exceeds 30 s or 2 GiB.
    """
    if len(source) > MAX_SOURCE_BYTES:
        raise InvalidSchemaError(f"larger than {MAX_SOURCE_BYTES >> 20} MiB")
    with tempfile.TemporaryDirectory(prefix="balog-proto-") as folder:
        room = Path(folder)
        (room / "in").mkdir()
        (room / "in" / FILE).write_bytes(source)
        (room / "rules").write_bytes(_rules())
        command = [
            *(sys.executable, "-I", "-c", _CHILD),
            f"--descriptor_set_in={room / 'rules'}",
            "-I.",
            f"--descriptor_set_out={room / 'out'}",
            "--include_imports",
            FILE,
        ]
        try:
            done = subprocess.run(
                command,
                check=False,
                cwd=room / "in",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MAX_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise InvalidSchemaError(f"protoc was not done with it within {MAX_SECONDS} s") from None
        if done.returncode:
            raise _refusal(done.returncode, done.stderr)
        return descriptor_pb2.FileDescriptorSet.FromString((room / "out").read_bytes())


def _refusal(code: int, output: bytes) -> InvalidSchemaError:
    lines = output[: 1 << 20].decode(errors="replace").splitlines()
    complaints = [match for match in map(_COMPLAINT.match, lines) if match]
    if not complaints:
        return InvalidSchemaError(f"protoc ended with {code}; is the file UTF-8 text, and of a usual size?")
    for match in complaints:  # a missing import causes the other complaints
        if match["reason"] == "File not found.":
            wanted = "google/protobuf/*.proto and buf/validate/validate.proto"
            return InvalidSchemaError(f"imports {_line(match['file'])}, and only {wanted} can be imported")
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return InvalidSchemaError(_line(complaints[0]["reason"]) + more, "", complaints[0]["place"] or "")


def _line(text: str) -> str:
    return printable(text, " ")[:_MAX_REASON]


@lru_cache(maxsize=1)
def _rules() -> bytes:
    """Return ``buf/validate/validate.proto`` and its imports, from the package protovalidate."""
    files: dict[str, bytes] = {}

    def add(file: Any) -> None:
        for inner in file.dependencies:
            add(inner)
        files.setdefault(file.name, file.proto.to_binary())

    add(protovalidate.ViolationPb.desc().file)
    every = descriptor_pb2.FileDescriptorSet(
        file=[descriptor_pb2.FileDescriptorProto.FromString(data) for data in files.values()]
    )
    return bytes(every.SerializeToString())
