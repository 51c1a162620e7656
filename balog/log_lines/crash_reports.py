"""Reports of crashes that runtimes, C libraries and shells print: Java, Go, Rust, Node.js, C++, .NET, Ruby, PHP.

Tracebacks of Python are not here: the assembler joins them to the record that logged them. A pattern is matched at
one place, and its parts are bounded or differ in their characters: a line is read in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from balog.event import Level
from balog.log_lines.line import LogLine

INDENTED = (" ", "\t")

Ahead = Callable[[int], "str | None"]
"""Returns the line that comes so many lines later; None after the last line. Raises ``Undecided`` before it is read."""


class Undecided(Exception):
    """The lines that decide about a line are not read yet."""


class _Kind(NamedTuple):
    """How one runtime reports a crash.

    Attributes:
        language: "" if the report does not show it.
        level: of a report; one of memory that ran out is CRITICAL.
        head: matches the whole first line; its groups are ``type`` and ``reason``.
        more: matches further lines that are not indented.
        end: matches the first line after a reason of several lines.
    """

    language: str
    level: Level
    head: re.Pattern[str]
    more: re.Pattern[str]
    end: re.Pattern[str]


_NEVER = "(?!)"
_FRAME = r"[ \t]{1,8}at \S|\t\.\.\. \d"
_TYPE = r"(?P<type>(?:[A-Za-z_$][\w$]{0,150}[.\\+]){0,20}[A-Za-z_$][\w$]{0,150})"
_REASON = r"(?::[ \t]?(?P<reason>.*))?"
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Killed": "SIGKILL",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
}
# A shell adds its name, the process and the command when it runs a script or a pipe.
_SIGNAL = (
    r"(?:(?:\S{0,200}sh|\S{1,200}: line \d{1,9}): {1,8}\d{1,10} )?"
    rf"(?P<type>{'|'.join(_SIGNALS)})(?: {{2,40}}\S.*| \(core dumped\).*)?$"
)
_BY_SIGNAL = _SIGNAL.replace("?P<type>", "?:")


def _kind(language: str, level: Level, head: str, more: str = _NEVER, end: str = _NEVER) -> _Kind:
    return _Kind(language, level, *(re.compile(pattern, re.DOTALL) for pattern in (head, more, end)))


_BARE = _kind("", "ERROR", rf"(?P<cause>Caused by: )?{_TYPE}{_REASON}", "Caused by: ", _FRAME)
_NODE = _kind(
    "javascript", "ERROR", r"\S.{0,1000}:\d{1,9}", r"[}\]]|\(Use `|Node\.js v\d", rf"{_FRAME}|\(Use `|Node\.js v\d"
)
_GO = _kind(
    "go",
    "CRITICAL",
    r"(?P<type>panic|fatal error): (?P<reason>.+)",
    r"\[signal |goroutine \d|runtime stack:|created by |exit status \d|\.\.\.|r\w{1,5} {1,8}0x"
    r"|(?:[\w./%*\[\]{}·-]|\([*\w.]{1,200}\)){1,300}\([^\n]{0,2000}\)$",
)
_RUST = _kind(
    "rust",
    "CRITICAL",
    r"thread '[^']{0,200}' (?:\(\d{1,20}\) )?"
    r"(?:(?P<type>panic)ked at (?:'(?P<reason>.*)', )?[^\n']{1,1000}|has overflowed its stack)"
    r"|fatal runtime error: .*|memory allocation of \d{1,30} bytes failed",
    rf"stack backtrace:|note: |fatal runtime error: |{_BY_SIGNAL}",
    r"stack backtrace:|note: (?:run with|Some details)",
)
_KINDS = (
    _kind("java", "ERROR", rf'Exception in thread "[^"]{{0,200}}" {_TYPE}{_REASON}', "Caused by: ", _FRAME),
    _kind(
        "java",
        "CRITICAL",
        r"(?:Exception: |(?:Terminating|Aborting) due to )(?P<type>java\.lang\.\w{1,100}Error)(?::? (?P<reason>.*))?"
        r"|# (?:A fatal error has been detected by|There is insufficient memory for) the Java Runtime Environment.*",
        "#",
    ),
    _GO,
    _RUST,
    _kind("javascript", "CRITICAL", r"FATAL ERROR: (?P<reason>.* heap out of memory)", r"-----|\d{1,3}: 0x"),
    _kind(
        "javascript",
        "ERROR",
        r"Uncaught (?:\(in promise\) )?(?:(?P<type>[\w$.]{0,200}(?:Error|Exception))(?:: (?P<reason>.*))?|['\"].*)",
        r"[}\]]|Node\.js v\d",
        _FRAME,
    ),
    _kind(
        "c++",
        "CRITICAL",
        r"terminate called (?:after throwing an instance of '(?P<type>[^']{1,300})'|without an active exception)"
        r"|libc\+\+abi: terminating.*",
        _BY_SIGNAL,
    ),
    _kind(
        "c",
        "CRITICAL",
        r"\S[^:]{0,200}: \S[^:]{0,300}:\d{1,9}: .{1,1000}: (?P<reason>Assertion [`'].*' failed\.?)"
        r"|(?:free|malloc|realloc|munmap_chunk)\(\): .*|double free or corruption.*|\*\*\* .{1,200} \*\*\*: terminated",
        _BY_SIGNAL,
    ),
    _kind(
        "python",
        "CRITICAL",
        r"Fatal Python error: (?P<reason>.*)",
        rf"Python runtime state: |Current thread |Thread 0x|Extension modules: |<no Python frame>|{_BY_SIGNAL}",
    ),
    _kind("c#", "ERROR", rf"Unhandled [Ee]xception(?:\. |: ){_TYPE}: (?P<reason>.*)", end=_FRAME),
    _kind("ruby", "ERROR", r"[^\s:][^:]{0,500}:\d{1,9}:in [`'][^']{0,300}': (?P<reason>.*) \((?P<type>[A-Z][\w:]*)\)"),
    _kind(
        "php",
        "ERROR",
        rf"(?:PHP )?Fatal error: +Uncaught {_TYPE}{_REASON}",
        r"Stack trace:|#\d",
        "Stack trace:|  thrown ",
    ),
    _kind("php", "ERROR", r"PHP Fatal error: +(?P<reason>.*)"),
    _kind("", "CRITICAL", _SIGNAL),
)
_CARET = re.compile(r"\s*\^+\s*")
_GOROUTINE = ("goroutine ", "[signal ", "runtime stack:")
_NODE_END = "Node.js v"
_SHOWN = 3  # lines of Node.js before the reason: place, source, caret
_MOST_AHEAD = 20
_LANGUAGES = (("\tat ", "java"), ("    at ", "javascript"), ("   at ", "c#"))
"""The first characters of a frame, and its language."""

_OUT_OF_MEMORY = re.compile(r"(?:OutOfMemory|\bMemory|NoMemory)(?:Error|Exception)\b|out of memory|Allowed memory size")
_ENDINGS = ("Error", "Exception", "Interrupt", "Expired", "Disconnected")
_MODULES = frozenset(("errors", "exceptions", "error", "exception", "err"))
_NAMES = frozenset(("socket.timeout", "socket.gaierror", "zlib.error", "struct.error", "queue.Empty"))
_CONTINUES = re.compile(
    r"LINE \d{1,9}: |(?:DETAIL|HINT|CONTEXT|QUERY): |\[(?:SQL|parameters): |\(Background on this error at: "
)
_FIELD = re.compile(r"[\w.\[\]-]{1,300}")


def continues_message(line: str, exception: str, ahead: Ahead) -> bool:
    """Return whether a line continues an exception's message although it is not indented.

    Known are the messages of psycopg, SQLAlchemy and pydantic.

    Args:
        line: the line.
        exception: the first line of the exception.
        ahead: the following lines.

    Raises:
        Undecided: the next line decides.
    """
    if " validation error" in exception and _FIELD.fullmatch(line):
        return (ahead(1) or "").startswith("  ")
    return _CONTINUES.match(line) is not None


def is_out_of_memory(text: str) -> bool:
    """Return whether the first line of an exception reports that memory ran out."""
    return _OUT_OF_MEMORY.search(text[:1000]) is not None


class CrashReport:
    """A report, from its first line."""

    def __init__(self, kind: _Kind, head: re.Match[str]) -> None:
        self._kind = kind
        self._head = head
        self.lines = [head.string]

    @property
    def is_bare(self) -> bool:
        """Return whether the first line is only an exception, which may belong to a record before it."""
        return self._kind is _BARE

    @property
    def is_open(self) -> bool:
        """Return whether more lines are likely to come, which some runtimes need a moment for."""
        return self._kind.more.pattern != _NEVER and not self.lines[-1].startswith(_NODE_END)

    def awaits(self, line: str) -> bool:
        """Return whether the line belongs to the report, whatever its format."""
        if self._kind is _NODE:
            return len(self.lines) < _SHOWN or not any(self.lines[_SHOWN:])
        return self._kind is _RUST and len(self.lines) == 1 and self.lines[0].endswith(":") and line != ""

    def takes(self, line: str, ahead: Ahead) -> bool:
        """Return whether a line that is in no known format belongs to the report.

        Raises:
            Undecided: further lines decide.
        """
        if self.lines[-1].startswith(_NODE_END):
            return False
        if not line or line.startswith(INDENTED) or self._kind.more.match(line):
            return True
        if continues_message(line, self.lines[0], ahead):
            return True
        if self._end is not None:
            return False
        for number in range(1, _MOST_AHEAD):
            text = ahead(number)
            if not text or self._kind.end.match(text):
                return bool(text)
        return False

    def add(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    @property
    def _end(self) -> int | None:
        """Return the index of the first line after the reason."""
        if self._kind.end.pattern == _NEVER:
            return 1
        return next((at for at, text in enumerate(self.lines) if at and self._kind.end.match(text)), None)

    def finished(self) -> LogLine:
        """Return the record: its ``exception`` has the type, the reason and the language, ``exc_text`` the report."""
        while not self.lines[-1].strip():
            self.lines.pop()
        level, language, first = self._kind.level, self._kind.language, self.lines[0]
        if self._kind is _NODE:
            first = next((line for line in self.lines[_SHOWN:] if line), first)
        elif self._kind is _GO and not any(line.startswith(_GOROUTINE) for line in self.lines):
            level, language = "ERROR", ""  # other programs write such words, too
        elif self._kind is _BARE:
            frames = self.lines[1:]
            language = next((name for start, name in _LANGUAGES if any(x.startswith(start) for x in frames)), "")
        kind, reason = self._exception(first)
        return LogLine(
            level="CRITICAL" if is_out_of_memory(first) else level,
            message=f"{first} {reason}" if self._kind is _RUST and first.endswith(":") else first,
            exception={"type": kind, "message": reason or first, **({"language": language} if language else {})},
            exc_text="\n".join(self.lines) if len(self.lines) > 1 else None,
            is_uncaught=not self.is_bare,
        )

    def _exception(self, first: str) -> tuple[str, str]:
        """Return the type and the reason. The first line of Node.js is that below the caret."""
        head = _BARE.head.fullmatch(first) if self._kind is _NODE else self._head
        groups = head.groupdict() if head else {}
        name, reason = groups.get("type") or "crash", groups.get("reason") or ""
        if name in _SIGNALS:
            return _SIGNALS[name], name
        if what := next((line for line in self.lines if line.startswith("  what():")), ""):
            return name, what.partition(":")[2].strip()
        end = self._end
        if end is not None or (self._kind is _RUST and first.endswith(":")):
            below = self.lines[self.lines.index(first) + 1 : end]
            if self._kind is not _RUST:
                below = list(takewhile(lambda line: not line.startswith(INDENTED), below))
            reason = "\n".join([reason, *below]).strip()
        return name, reason


def crash_report(line: str, ahead: Ahead) -> CrashReport | None:
    """Return the report that a line begins; None if it begins none. The line is in no known format.

    Raises:
        Undecided: further lines decide.
    """
    if line.startswith((*INDENTED, "{")):
        return None
    for kind in _KINDS:
        if match := kind.head.fullmatch(line):
            return CrashReport(kind, match)
    if (match := _BARE.head.fullmatch(line)) and _is_exception(match):
        return CrashReport(_BARE, match)
    if (match := _NODE.head.fullmatch(line)) and ahead(1) is not None and _CARET.fullmatch(ahead(2) or ""):
        return CrashReport(_NODE, match)
    return None


def has_frame(line: str | None) -> bool:
    """Return whether a line is a frame of a stack of Java, Node.js or .NET."""
    return line is not None and _BARE.end.match(line) is not None


def _is_exception(bare: re.Match[str]) -> bool:
    """Return whether a name is that of an exception, and not of another thing."""
    *modules, name = bare["type"].split(".")
    if bare["type"] in _NAMES or bare.string.startswith("Exception: ") or (bare["cause"] and modules):
        return True
    is_named = name[0].isupper() and name.endswith(_ENDINGS) and name not in _ENDINGS
    return is_named or (bare["reason"] is not None and name[0].isupper() and not _MODULES.isdisjoint(modules))
