"""The sidecar reads what real runtimes print when a program crashes."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.service

JAVA = """
public class Boom {
    static void sync() { throw new IllegalStateException("no answer"); }
    public static void main(String[] args) {
        System.err.println("WARN starting");
        if (args[0].equals("memory")) {
            java.util.List<byte[]> all = new java.util.ArrayList<>();
            while (true) all.add(new byte[1 << 22]);
        }
        try { sync(); } catch (Exception error) { throw new RuntimeException("sync failed\\nat page 3", error); }
    }
}
"""
GO = """
package main

import ("fmt"; "os")

func main() {
    fmt.Fprintln(os.Stderr, "WARNING starting")
    switch os.Args[1] {
    case "signal": var pointer *int; *pointer = 1
    case "deadlock": <-make(chan int)
    default: defer func() { panic("second") }(); panic("first\\nof two lines")
    }
}
"""
RUST = """
fn deep(n: u64) -> u64 { let a = [n; 1000]; if n == u64::MAX { 0 } else { deep(n + 1) + a[(n % 1000) as usize] } }
fn main() {
    eprintln!("WARNING starting");
    match std::env::args().nth(1).unwrap().as_str() {
        "stack" => println!("{}", deep(0)),
        "assert" => assert_eq!(1, 2, "differs"),
        _ => panic!("one\\ntwo"),
    }
}
"""
NODE = """
console.error("WARNING starting");
const kind = process.argv[2];
if (kind === "promise") Promise.reject(new TypeError("refused"));
else if (kind === "text") throw "refused";
else if (kind === "module") require("./nowhere");
else { const error = new Error("outer\\nof two lines", {cause: new RangeError("inner")}); error.code = 1; throw error; }
"""
CPP = """
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
int main(int count, char **arguments) {
    fputs("WARNING starting\\n", stderr);
    switch (arguments[1][0]) {
        case 't': throw std::runtime_error("boom");
        case 's': *(volatile int *)0 = 1;
        default: abort();
    }
}
"""
SOURCES = {
    "java": ("Boom.java", JAVA, ["javac", "Boom.java"], ["java", "-Xmx64m", "Boom"]),
    "go": ("boom.go", GO, ["go", "build", "-o", "boom", "boom.go"], ["./boom"]),
    "rustc": ("boom.rs", RUST, ["rustc", "-o", "boom", "boom.rs"], ["./boom"]),
    "node": ("boom.js", NODE, ["node", "--check", "boom.js"], ["node", "boom.js"]),
    "g++": ("boom.cpp", CPP, ["g++", "-w", "-o", "boom", "boom.cpp"], ["./boom"]),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Build the crashing program of a runtime once, and return its folder and its command."""
    folders: dict[str, Path] = {}

    def build(runtime: str) -> tuple[Path, list[str]]:
        name, source, compiling, command = SOURCES[runtime]
        if shutil.which(compiling[0]) is None:
            pytest.skip(f"{compiling[0]} is not installed")
        if runtime not in folders:
            folder = tmp_path_factory.mktemp("crash")
            (folder / name).write_text(source)
            subprocess.run(compiling, cwd=folder, check=True, capture_output=True)
            folders[runtime] = folder
        return folders[runtime], command

    return build


def events_of(folder: Path, command: list[str], archive: Path) -> list[dict[str, Any]]:
    """Run a command under the sidecar, and return the events of its log lines."""
    config = archive.with_suffix(".json")
    config.write_text(json.dumps({"sinks": [{"type": "store", "path": str(archive), "topic": "x"}]}))
    subprocess.run(
        [sys.executable, "-m", "balog", "run", "--config", str(config), "--", *command], cwd=folder, capture_output=True
    )
    lines = [line for path in sorted(archive.rglob("*.gz")) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [event for event in map(json.loads, lines) if event["payload"]["cls_type"] == "log"]


@pytest.mark.parametrize(
    ("runtime", "kind", "level", "type", "reason", "language"),
    [
        ("java", "x", "ERROR", "java.lang.RuntimeException", "sync failed\nat page 3", "java"),
        ("java", "memory", "CRITICAL", "java.lang.OutOfMemoryError", "Java heap space", "java"),
        ("go", "x", "CRITICAL", "panic", "first", "go"),
        ("go", "signal", "CRITICAL", "panic", "runtime error: invalid memory address or nil pointer dereference", "go"),
        ("go", "deadlock", "CRITICAL", "fatal error", "all goroutines are asleep - deadlock!", "go"),
        ("rustc", "x", "CRITICAL", "panic", "one\ntwo", "rust"),
        (
            "rustc",
            "assert",
            "CRITICAL",
            "panic",
            "assertion `left == right` failed: differs\n  left: 1\n right: 2",
            "rust",
        ),
        ("rustc", "stack", "CRITICAL", "crash", "thread 'main' (N) has overflowed its stack", "rust"),
        ("node", "x", "ERROR", "Error", "outer\nof two lines", "javascript"),
        ("node", "promise", "ERROR", "TypeError", "refused", "javascript"),
        ("node", "text", "ERROR", "refused", "refused", "javascript"),
        ("node", "module", "ERROR", "Error", "Cannot find module './nowhere'\nRequire stack:\n- PLACE", "javascript"),
        ("g++", "throw", "CRITICAL", "std::runtime_error", "boom", "c++"),
    ],
)
def test_a_crash_is_one_event_with_its_reason(
    built: Any, tmp_path: Path, runtime: str, kind: str, level: str, type: str, reason: str, language: str
) -> None:
    """Given a program that prints a warning and crashes, then the warning is as it was, and all else is one event."""
    folder, command = built(runtime)
    (first, crash) = events_of(folder, [*command, kind], tmp_path / "archive")
    assert (first["header"]["level"], first["payload"]["message"]) == ("WARNING", "starting")
    exception = crash["payload"]["exception"]
    thread = exception["message"].partition("(")[2].partition(")")[0]
    message = exception["message"].replace(str(folder / "boom.js"), "PLACE").replace(f"({thread})", "(N)")
    assert (crash["header"]["level"], exception["type"], message) == (level, type, reason)
    assert exception["language"] == language


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(("kind", "type"), [("s", "SIGSEGV"), ("abort", "SIGABRT"), ("kill", "SIGKILL")])
def test_a_shell_that_reports_a_signal(built: Any, tmp_path: Path, shell: str, kind: str, type: str) -> None:
    """Given a script whose program a signal ends, then the shell's line is an event of its own."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    folder, command = built("g++")
    script = tmp_path / "tap.sh"
    script.write_text(
        "sh -c 'echo WARNING starting >&2; kill -9 $$'\ntrue\n" if kind == "kill" else f"{command[0]} {kind}\ntrue\n"
    )
    (first, crash) = events_of(folder, [shell, str(script)], tmp_path / "archive")
    assert (first["payload"]["message"], crash["header"]["level"]) == ("starting", "CRITICAL")
    assert crash["payload"]["exception"]["type"] == type
