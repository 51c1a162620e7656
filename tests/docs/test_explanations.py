"""What the pages of explanation show is so: their numbers are the code's, their examples compute."""

import re
from datetime import timezone

import pytest

from balog.analytics.reporting import comparison
from balog.watch.bands import band_history, bands
from tests.documentation import docs_page

BANDS = docs_page("bands.md").read_text(encoding="utf-8")


def test_the_example_of_a_band_is_what_the_code_computes() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", BANDS, re.DOTALL | re.MULTILINE)
    found: dict[str, float] = {}
    exec(compile(block, "bands.md", "exec"), found)
    history = band_history.BandHistory(spread=0.04, known=20)
    for hour in range(21):
        history.times.append((4000 + hour) * 3600)
        history.values.append(1000.0)
        history.hours.append(hour)
        history.residuals.append(float("nan"))
    options = band_history.BandOptions(4, 0.1, "none", timezone.utc)
    band = bands.expect(history, 4021 * 3600.0, options)
    assert band is not None
    assert (band.low, band.high) == pytest.approx((found["low"], found["high"]))


def test_the_numbers_of_a_report_s_comparison_are_the_code_s() -> None:
    assert comparison._chance(148, 147) > 1
    assert comparison.counted("failures", 10, 0, good="less").verdict == "worse"
