"""Redirects of requests over a kept connection: which are followed, and that no request is made twice unasked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openenv_gym.errors import UnreachableError
from tests.openenv_gym.transports.conftest import WAIT_S, Answer, HttpRequest, Run, Start
from tests.openenv_gym.transports.test_exchange import JSON_TYPE, SECRET, exchange_of

DONE: Answer = (200, JSON_TYPE, b"{}")


def moved(requests: list[HttpRequest], **places: tuple[int, str]) -> Callable[[HttpRequest], Answer]:
    """Answers that send from some paths to elsewhere; all others are places that answer."""

    def answer(request: HttpRequest) -> Answer:
        requests.append(request)
        status, there = places.get(request.target.lstrip("/"), (200, ""))
        return (status, {"Location": there}, b"") if there else DONE

    return answer


@pytest.mark.parametrize("status", [307, 308])
def test_one_that_says_that_nothing_was_done_is_followed_within_the_origin_and_remembered(
    serve_http: Start, run: Run, status: int
) -> None:
    requests: list[HttpRequest] = []
    exchange = exchange_of(serve_http(moved(requests, mcp=(status, "/there?a=1"))), headers=SECRET)
    for _ in range(2):
        assert run(exchange.post(b"{}", WAIT_S)) == b"{}"
    assert [(each.method, each.target) for each in requests] == [("POST", "/mcp")] + [("POST", "/there?a=1")] * 2
    assert requests[2].headers["x-key"] == "hidden"
    exchange.drop()


@pytest.mark.parametrize("status", [301, 302, 303])
def test_one_after_which_it_may_be_done_is_an_error_that_names_the_new_address(
    serve_http: Start, run: Run, status: int
) -> None:
    requests: list[HttpRequest] = []
    base_url = serve_http(moved(requests, mcp=(status, "/new/mcp")))
    with pytest.raises(UnreachableError, match=f"give {base_url}/new as base_url") as caught:
        run(exchange_of(base_url).post(b"{}", WAIT_S))
    assert caught.value.status == status
    assert len(requests) == 1


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("status", [302, 307, 308])
def test_none_leads_to_another_origin(serve_http: Start, run: Run, status: int, repeatable: bool) -> None:
    stolen: list[HttpRequest] = []
    other = serve_http(moved(stolen))
    exchange = exchange_of(serve_http(moved([], mcp=(status, f"{other}/mcp"))))
    for _ in range(2):
        with pytest.raises(UnreachableError, match=f"give {other} as base_url"):
            run(exchange.post(b"{}", WAIT_S, repeatable=repeatable))
    assert not stolen


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_what_may_be_done_twice_learns_a_new_address(serve_http: Start, run: Run, status: int) -> None:
    requests: list[HttpRequest] = []
    exchange = exchange_of(serve_http(moved(requests, mcp=(status, "/new/mcp"))))
    assert run(exchange.post(b"{}", WAIT_S, repeatable=True)) == run(exchange.post(b"{}", WAIT_S)) == b"{}"
    assert [each.target for each in requests] == ["/mcp", "/new/mcp", "/new/mcp"]
    exchange.drop()


@pytest.mark.parametrize("repeatable", [True, False])
def test_no_address_is_asked_twice(serve_http: Start, run: Run, repeatable: bool) -> None:
    requests: list[HttpRequest] = []
    exchange = exchange_of(serve_http(moved(requests, mcp=(307, "/there"), there=(307, "/mcp"))))
    with pytest.raises(UnreachableError, match="in a circle"):
        run(exchange.post(b"{}", WAIT_S, repeatable=repeatable))
    assert [each.target for each in requests] == ["/mcp", "/there"]


def test_there_are_not_ever_more_of_them(serve_http: Start, run: Run) -> None:
    requests: list[HttpRequest] = []

    def onward(request: HttpRequest) -> Answer:
        requests.append(request)
        return 308, {"Location": f"/{len(requests)}"}, b""

    with pytest.raises(UnreachableError, match="after 10 redirects"):
        run(exchange_of(serve_http(onward)).post(b"{}", WAIT_S))
    assert len(requests) == 11


@pytest.mark.parametrize("location", ["http://[::1", "http://127.0.0.1:99999/", "file:///etc/passwd", "http://a b/"])
def test_one_to_no_address_is_an_error_and_forgotten(serve_http: Start, run: Run, location: str) -> None:
    exchange = exchange_of(serve_http(moved([], mcp=(307, location))))
    home = exchange.url
    with pytest.raises(UnreachableError, match="no server's address"):
        run(exchange.post(b"{}", WAIT_S, repeatable=True))
    assert exchange.url == home


def test_what_a_request_line_cannot_have_is_quoted(serve_http: Start, run: Run) -> None:
    requests: list[HttpRequest] = []
    exchange = exchange_of(serve_http(moved(requests, mcp=(307, "/a%0db c/é?x=\x7f"))))
    assert run(exchange.post(b"{}", WAIT_S)) == b"{}"
    assert requests[1].target == "/a%0db%20c/%C3%A9?x=%7F"
    exchange.drop()


def test_a_place_that_does_not_answer_is_not_remembered(serve_http: Start, run: Run) -> None:
    requests: list[HttpRequest] = []

    def answer(request: HttpRequest) -> Answer:
        requests.append(request)
        return (307, {"Location": "/gone"}, b"") if request.target == "/mcp" else (404, {}, b"")

    exchange = exchange_of(serve_http(answer))
    home = exchange.url
    for _ in range(2):
        with pytest.raises(UnreachableError) as caught:
            run(exchange.post(b"{}", WAIT_S))
        assert caught.value.status == 404
        assert exchange.url == home
    assert [each.target for each in requests] == ["/mcp", "/gone"] * 2
