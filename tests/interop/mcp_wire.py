"""Streamable HTTP by hand: what a test must see that the official client keeps to itself."""

from __future__ import annotations

import itertools
import json
from typing import Any, Self

import httpx

__all__ = ["LATEST", "Wire", "answers"]

LATEST = "2025-11-25"
ACCEPT = "application/json, text/event-stream"


class Wire:
    """One client's end, before and after ``initialize``."""

    def __init__(self, url: str, **headers: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=20, trust_env=False)
        self.headers = {"accept": ACCEPT, **headers}
        self.ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, message: object, **headers: str) -> httpx.Response:
        content = message if isinstance(message, str | bytes) else json.dumps(message)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(
            "/mcp", content=content, headers={"content-type": "application/json", **self.headers, **more}
        )

    def request(self, method: str, params: object = None, request_id: object = None) -> httpx.Response:
        return self.post(self.message(method, params, request_id))

    def message(self, method: str, params: object = None, request_id: object = None) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self.ids) if request_id is None else request_id, "method": method}
        return message if params is None else {**message, "params": params}

    def notify(self, method: str, params: object = None) -> httpx.Response:
        message = {"jsonrpc": "2.0", "method": method}
        return self.post(message if params is None else {**message, "params": params})

    def initialize(self, version: str = LATEST) -> httpx.Response:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        return self.request("initialize", params)

    def begin(self, version: str = LATEST) -> Self:
        response = self.initialize(version)
        self.headers |= {"mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": version}
        assert self.notify("notifications/initialized").status_code == 202
        return self

    def result(self, method: str, params: object = None) -> Any:
        answer = answers(self.request(method, params))[-1]
        return answer["result"]

    def error(self, method: str, params: object = None) -> Any:
        return answers(self.request(method, params))[-1]["error"]

    def call(self, name: str, /, **arguments: Any) -> Any:
        return self.result("tools/call", {"name": name, "arguments": arguments})


def answers(response: httpx.Response) -> list[dict[str, Any]]:
    """The messages in a response, whichever form it has."""
    if response.headers["content-type"].startswith("application/json"):
        return [response.json()]
    assert response.headers["content-type"].startswith("text/event-stream")
    return [
        json.loads(line[5:]) for line in response.text.splitlines() if line.startswith("data:") and line[5:].strip()
    ]
