"""An older release of OpenEnv meets this project: the interoperability matrix with ``openenv`` 0.5.0 as its stock side.

It is installed into a folder of its own, ahead of the release that the other tests meet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.installed import install, run

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

OLDER = "0.5.0"

# Pairs of the two projects alone. Of the refusals of a full server only ours can be told: the older client may write to
# the closed socket before it has read why it was closed, with its own server too.
PAIRS = "(stock and ours or stock and remote)"
ITS_OWN_RACE = "refuses_a_second and (stock-async or stock-sync or stock-typed)"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables under which Python finds the older release."""
    return install(f"openenv=={OLDER}", tmp_path_factory.mktemp("older"))


def test_its_clients_play_our_server_and_our_clients_its_server(older: dict[str, str]) -> None:
    found = run(["-c", "import importlib.metadata; print(importlib.metadata.version('openenv'))"], older)
    assert found.strip() == OLDER
    matrix = Path(__file__).with_name("test_matrix.py")
    options = ["-q", "-x", "-p", "no:cacheprovider", "--no-cov", "--timeout", "60"]
    chosen = ["-k", f"{PAIRS} and not ({ITS_OWN_RACE})"]
    report = run(["-m", "pytest", str(matrix), *options, *chosen], older)
    assert " passed" in report
    assert "failed" not in report
