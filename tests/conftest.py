"""Hypothesis: the same examples on every machine of CI, more of them when someone has time.
And the event loop of tests that wait: the one our HTTP client runs on."""

import pytest
from hypothesis import HealthCheck, settings

slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", deadline=None, suppress_health_check=slow)
settings.register_profile(
    "long", deadline=None, suppress_health_check=slow, max_examples=3_000, print_blob=True
)
# Whether a change is accepted must not be a matter of luck: there the same cases are tried each time.
settings.register_profile("same", deadline=None, suppress_health_check=slow, derandomize=True)
settings.load_profile("default")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
