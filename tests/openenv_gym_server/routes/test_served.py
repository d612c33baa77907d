"""Tests of ``openenv_gym_server.routes.served``."""

from __future__ import annotations

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym_server.routes.served import failure


def test_an_error_is_answered_in_the_references_form() -> None:
    refused = failure(InvalidActionError("x", errors=[{"loc": ["a"]}]))
    assert (refused.status_code, refused.body) == (422, b'{"detail":[{"loc":["a"]}]}')
    broken = failure(EnvironmentExecutionError("secret"))
    assert (broken.status_code, broken.body) == (500, b"Internal Server Error")
    assert broken.headers["content-type"].startswith("text/plain")
