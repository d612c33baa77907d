"""Both echo servers."""

import pytest

from openenv_gym_envs.echo import create_app
from tests.openenv_gym_envs.echo.stock_echo import stock_app
from tests.serving import serve


@pytest.fixture(scope="module", params=["ours", "stock"])
def echo_url(request):
    with serve(create_app() if request.param == "ours" else stock_app()) as url:
        yield url
