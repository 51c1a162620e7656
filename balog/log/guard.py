"""The guard around every entry that a program calls: logging never raises into the program, unless ``strict``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from balog.log.configuration import state
from balog.log.values.validation import PayloadError

Function = TypeVar("Function", bound=Callable[..., Any])


def guarded(otherwise: Callable[..., Any] | None = None) -> Callable[[Function], Function]:
    """Decorate an entry that a program calls: an error is counted instead of raised, unless ``strict``.

    ``EventLogger._log`` has a guard of its own.

    Args:
        otherwise: makes the result after an error, from the same arguments; None for the result None.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except (PayloadError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # such as the panic of an extension in Rust
                recorder = state.current()
                recorder.failed()
                if recorder.strict:
                    raise
                return None if otherwise is None else otherwise(*args, **options)

        return cast("Function", call)

    return decorate
