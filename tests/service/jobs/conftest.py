import pytest

from balog.topics import open_topics


@pytest.fixture
def home(tmp_path):
    with open_topics(f"local:{tmp_path}") as home:
        yield home
