"""The model of growth finds the laws of measurements that were made by known ones."""

import random

import pytest

pytest.importorskip("numpy", reason="numpy is not installed")
from benchmarks.scaling_model import Model, Place, Prediction, Run, error, medians_of


def needed(place: Place, noise: float = 0.0, seed: int = 0) -> Prediction:
    """What a job needs by laws that are known."""
    draw = random.Random(f"{place} {seed}")

    def about(value: float) -> float:
        return value * (1 + draw.uniform(-noise, noise))

    readers = place.commits * place.readers
    shared = 0.7 * place.workers + 0.5 * readers + 30 * place.gigabytes
    each = 0.8 * (place.commits - 1)
    planned = place.days + place.writers - 1
    events = place.days * place.readers if place.readers <= 4 else planned
    files = {"events": place.commits * events, "types": place.commits * planned * 3}
    tasks = place.commits * 6 + 2 * readers
    return Prediction(
        about(2 + each + shared),
        about(2 + each + shared / place.cores),
        tasks,
        about(0.1 * (place.commits - 1) + 0.01 * readers + 20 * place.gigabytes),
        about(400),
        files if place.job == "load" else {},
    )


def places(factors: tuple[int, ...], job: str = "load") -> list[Place]:
    return [
        Place(job, workers, min(workers, 2), workers * min(factor, 4), -(-factor // 5), 0.03 * factor, commits, 9)
        for workers in (1, 2, 4)
        for factor in factors
        for commits in ((1, 4) if factor == 4 and job == "load" else (1,))
    ]


@pytest.mark.parametrize("job", ["load", "report"])
def test_a_known_law_predicts_sixteen_times_the_input_exactly(job: str) -> None:
    model = Model([Run(place, needed(place)) for place in places((1, 4), job)])
    for place in [*places((16,), job), Place(job, 800, 800, 1600, 760, 10_000, 90 if job == "load" else 1, 1)]:
        made, truth = model.predict(place), needed(place)
        assert made[:5] == pytest.approx(truth[:5], rel=1e-6)
        assert dict(made.files) == pytest.approx(dict(truth.files), rel=1e-6)


def test_noise_of_five_percent_makes_errors_of_the_same_size() -> None:
    runs = [Run(place, needed(place, 0.05, seed)) for place in places((1, 4)) for seed in range(5)]
    model = Model(medians_of(runs))
    off = [error(model.predict(place).processor, needed(place).processor) for place in places((16,))]
    assert max(map(abs, off)) < 0.1


def test_unshared_time_is_start_and_commits_and_the_rest_over_the_cores() -> None:
    model = Model([Run(place, needed(place)) for place in places((1, 4))])
    place = Place("load", 8, 8, 16, 2, 2.0, 3, 1)
    assert model.unshared(place) == pytest.approx(needed(place).seconds)
