"""The oldest Gymnasium that is supported: environments and vectors, single and remote, under it.

It is installed into a folder of its own, ahead of the release that the other tests run on.
"""

from __future__ import annotations

import pytest

from tests.interop.installed import install, run

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

OLDEST = "1.2.2"

TOUCHED = (
    "tests/openenv_gym/test_registration.py",
    "tests/openenv_gym/test_vector.py",
    "tests/openenv_gym_server/test_lanes.py",
    "tests/openenv_gym_server/test_native_vector.py",
    "tests/exactness/test_check_env.py",
    "tests/exactness/test_vector.py",
)


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables under which Python finds the oldest release."""
    return install(f"gymnasium=={OLDEST}", tmp_path_factory.mktemp("oldest"))


def test_environments_and_vectors_are_the_same_under_it(oldest: dict[str, str]) -> None:
    found = run(["-c", "import gymnasium; print(gymnasium.__version__)"], oldest)
    assert found.strip() == OLDEST
    options = ["-n", "2", "-q", "-x", "-p", "no:cacheprovider", "--no-cov", "--timeout", "120"]
    report = run(["-m", "pytest", *TOUCHED, *options], oldest)
    assert " passed" in report
    assert "failed" not in report
