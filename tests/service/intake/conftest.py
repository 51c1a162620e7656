import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Tests marked ``anyio`` are coroutines, run by asyncio."""
    return "asyncio"
