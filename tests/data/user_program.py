"""A program that uses every part of the logger. mypy --strict and pyright check it, and the tests run it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import structlog

from balog import bound, configure, emit, flush, get_logger, set_level
from balog.log.logger import EventLogger
from balog.log.stdlib import install


def add_team(logger: Any, method: str, data: dict[str, Any]) -> dict[str, Any]:
    """Raise the level of slow calls, as a processor may."""
    if data.get("seconds", 0) > 2:
        data["level"] = "warning"
    return {**data, "team": "sync"}


configure(
    "stderr",
    level="INFO",
    levels={"quiet.*": "ERROR"},
    application="user-program",
    callsite=True,
    processors=[add_team],
    redact={"extra_keys": ["pin"]},
    strict=True,
)

log: EventLogger = get_logger()
named = get_logger("shop", shard=3)

named.debug("%s of %d", "a", 3)
named.info("done", payload={"cls_type": "job", "rows": 3}, channel="shop.jobs")
named.warning("slow", seconds=2.5)
named.warn("slow")
named.error("failed", exc_info=ValueError("no"))
named.err("failed")
named.critical("stop")
named.fatal("stop")
named.msg("hi", lazy={"rows": lambda: 3}, stack_info=True, stacklevel=1, extra={"stream": "users"})
named.log(logging.INFO, "by number")
named.log("WARNING", "by name")
named.info(payload={"cls_type": "job"})

child: EventLogger = named.bind(stream="users").unbind("stream").try_unbind("x").new(one=1).getChild("part")
names: tuple[str, int, int] = child.name, child.level, child.getEffectiveLevel()
if child.isEnabledFor(logging.INFO) and child.is_enabled_for("INFO"):
    child.info("enabled")
child.setLevel("ERROR")
child.setLevel(logging.NOTSET)
set_level("shop", "DEBUG")

with bound(invoice=17), structlog.contextvars.bound_contextvars(request_id="r1"):
    try:
        raise KeyError("k")
    except KeyError:
        named.exception("failed")


@bound(task="nightly")
async def main() -> None:
    """Log from a coroutine."""
    await named.ainfo("hi", rows=1)
    await named.awarning("hi")
    await named.alog(20, "hi")
    try:
        raise KeyError("k")
    except KeyError:
        await named.aexception("failed")


asyncio.run(main())
emit("INFO", "shop.raw", {"cls_type": "job"})
with install(replace=False):
    logging.getLogger("stdlib").warning("through the handler")
lost: int = flush(1.0)
