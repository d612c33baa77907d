"""Tests of ``openenv_gym_server.routes.body``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from openenv_gym.errors import InvalidActionError, MessageTooLargeError
from openenv_gym.types import GetTaskRequest
from openenv_gym_server.routes.body import checked, decoded, documented, received


def request_of(events: Iterable[dict[str, Any]]) -> Request:
    coming = iter(events)

    async def receive() -> dict[str, Any]:
        return next(coming)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def chunks(*parts: bytes) -> list[dict[str, Any]]:
    return [
        {"type": "http.request", "body": part, "more_body": number < len(parts)} for number, part in enumerate(parts, 1)
    ]


def test_a_body_is_joined_from_its_parts() -> None:
    assert asyncio.run(received(request_of(chunks(b"a", b"", b"bc")), 3)) == b"abc"


def test_a_body_above_the_limit_is_refused_before_it_has_come_to_its_end() -> None:
    with pytest.raises(MessageTooLargeError) as caught:
        asyncio.run(received(request_of(chunks(b"ab", b"cd", b"never read")), 3))
    assert (caught.value.size, caught.value.limit, caught.value.setting) == (4, 3, "max_message_size_mb")


def test_a_body_that_breaks_off_is_none() -> None:
    events = [*chunks(b"a", b"b")[:1], {"type": "http.disconnect"}]
    with pytest.raises(ClientDisconnect):
        asyncio.run(received(request_of(events), 3))


def test_no_body_is_nothing_where_none_is_needed() -> None:
    assert decoded(b"", required=False) is None
    assert decoded(b"null") is None


@pytest.mark.parametrize(
    ("content", "kind"), [(b"", "missing"), (b"{", "json_invalid"), (b"\xff", "json_invalid"), (b"nul", "json_invalid")]
)
def test_what_is_no_json_is_refused(content: bytes, kind: str) -> None:
    with pytest.raises(InvalidActionError) as caught:
        decoded(content)
    assert caught.value.errors is not None
    assert caught.value.errors[0]["type"] == kind
    assert caught.value.errors[0]["loc"][0] == "body"


@pytest.mark.parametrize(
    ("data", "kind", "loc"),
    [
        (None, "model_attributes_type", ["body"]),
        ([1], "model_attributes_type", ["body"]),
        ({"split": "a"}, "missing", ["body", "index"]),
    ],
)
def test_what_is_not_as_the_model_wants_it_is_refused(data: Any, kind: str, loc: list[str]) -> None:
    with pytest.raises(InvalidActionError) as caught:
        checked(GetTaskRequest, data)
    assert caught.value.errors is not None
    (fault,) = caught.value.errors
    assert (fault["type"], fault["loc"]) == (kind, loc)
    assert "url" not in fault


def test_a_body_is_its_model() -> None:
    assert checked(GetTaskRequest, {"split": "a", "index": "3"}) == GetTaskRequest(split="a", index=3)


def test_the_model_is_documented() -> None:
    keywords = documented(GetTaskRequest, dict[str, Any], required=False)
    assert keywords["openapi_extra"]["requestBody"]["required"] is False
    assert keywords["responses"][200]["model"] == dict[str, Any]
