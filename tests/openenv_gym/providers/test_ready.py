"""The readiness loop against servers that answer as scripted."""

import pytest

from openenv_gym.errors import ProviderError
from openenv_gym.providers._ready import wait_until_ready
from tests.serving import serve


def answering(routes):
    """An ASGI app whose paths answer with a status; a list is one status a request, the last one repeated."""

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            return
        statuses = routes.get(scope["path"], [404])
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    return app


def test_a_server_that_is_ready_is_found_ready():
    with serve(answering({"/ready": [200]}), lifespan="off") as url:
        wait_until_ready(url, 10)


def test_a_server_without_the_route_is_asked_for_its_health():
    with serve(answering({"/health": [200]}), lifespan="off") as url:
        wait_until_ready(url, 10)


def test_a_server_that_is_not_ready_yet_is_asked_again():
    routes = {"/ready": [503, 503, 200]}
    with serve(answering(routes), lifespan="off") as url:
        wait_until_ready(url, 10)
    assert routes["/ready"] == [200]


def test_a_server_that_never_gets_ready_is_given_up_with_its_last_answer():
    with serve(answering({"/ready": [500]}), lifespan="off") as url, pytest.raises(ProviderError) as caught:
        wait_until_ready(url, 0.2)
    assert "500" in caught.value.output


def test_a_server_that_ended_is_not_waited_for():
    with pytest.raises(ProviderError) as caught:
        wait_until_ready("http://127.0.0.1:9", 60, ended=lambda: "exit status 3")
    assert caught.value.output == "exit status 3"
