"""How long the oracle tests try: briefly and repeatably in a usual run, longer under `make soak`."""

import os
import random

from hypothesis import HealthCheck, settings

SOAK = int(os.environ.get("BALOG_SOAK", "0"))
"""How many times more examples than usual; 0: the usual ones, the same in every run."""


def examples(number: int) -> settings:
    """Return hypothesis's settings for that many examples, times BALOG_SOAK."""
    return settings(
        max_examples=number * max(SOAK, 1),
        derandomize=not SOAK,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


def seeds(number: int) -> list[int]:
    """Return the seeds of that many random runs: 0, 1, 2 … in a usual run, new ones in a soak."""
    if not SOAK:
        return list(range(number))
    return [random.SystemRandom().randrange(1 << 32) for _ in range(number * SOAK)]
