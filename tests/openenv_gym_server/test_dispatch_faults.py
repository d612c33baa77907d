"""Tests of ``openenv_gym_server.dispatch``: faulty messages and faulty environments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openenv_gym_server import parsing
from openenv_gym_server.dispatch import respond
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.parsing import LEFT_OUT, Terms, read
from tests.openenv_gym_server.rendering import OURS, STOCK, Rendering, no_wait
from tests.text_envs import Echo, Heard, Say


@pytest.fixture
def hosted() -> HostedEnvironment:
    return HostedEnvironment(Rendering(), Models(Say, Heard), no_wait)


def test_self_is_no_keyword_of_reset() -> None:
    class Loose(Echo):
        def reset(self, **more: Any) -> Heard:  # type: ignore[override]
            return Heard(echo=str(more))

    loose = HostedEnvironment(Loose(), Models(Say, Heard), no_wait)
    answer = json.loads(respond(loose, '{"type":"reset","data":{"self":1,"other":2}}', STOCK) or "")
    assert answer["data"]["observation"]["echo"] == "{'other': 2}"


def test_actions_and_exact_values_nested_too_deeply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(_: object) -> Any:
        raise RecursionError

    hosted = HostedEnvironment(Rendering(), Models(Say, Heard), no_wait)
    monkeypatch.setattr(parsing, "decode_exact", too_deep)
    monkeypatch.setattr(hosted.codec, "decode_action", too_deep)
    for text in ('{"type":"step","data":{"message":"x"}}', '{"type":"reset","data":{"seed":1}}'):
        refused = json.loads(respond(hosted, text, OURS) or "")
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert "too deeply" in refused["data"]["message"]


def test_a_large_faulty_message_is_diagnosed_without_being_made() -> None:
    large = "[" + "1," * 60_000 + "1]"
    for text, code, loc in (
        (f'{{"type":"step","id":5,"data":{{}},"zz":{large}}}', "VALIDATION_ERROR", ["zz"]),
        (f'{{"type":"step","id":5,"data":{large}}}', "VALIDATION_ERROR", ["data"]),
        (f'{{"type":"nope","id":5,"data":{large}}}', "UNKNOWN_TYPE", None),
        (f"{large}", "VALIDATION_ERROR", []),
        (f'{{"type":"step","id":5,"data":{large}', "INVALID_JSON", None),
    ):
        refused = json.loads(str(read(text, OURS)))
        assert refused["data"]["code"] == code
        assert len(json.dumps(refused)) < 2_000
        if loc is not None:
            assert refused["data"]["errors"][0]["loc"] == loc
        if loc:
            assert refused["id"] == 5
            assert refused["data"]["errors"][0]["input"] == LEFT_OUT


def test_a_shared_traceback_is_the_environments() -> None:
    class Faulty(Echo):
        def step(self, action: Say) -> Heard:
            return {}["nothing"]

    faulty = HostedEnvironment(Faulty(), Models(Say, Heard), no_wait)
    terms = Terms(session_id="s", share_tracebacks=True)
    data = json.loads(respond(faulty, '{"type":"step","data":{"message":"x"}}', terms) or "")["data"]
    assert (data["code"], data["message"], data["exception_type"]) == ("EXECUTION_ERROR", "'nothing'", "KeyError")
    assert 'return {}["nothing"]' in data["traceback"]
    assert "hosting.py" not in data["traceback"]


def test_refusals_of_names_and_sizes_name_the_flag_of_the_command_line(hosted: HostedEnvironment) -> None:
    refused = json.loads(respond(hosted, '{"type":"x-get_attr","data":{"name":"steps"}}', OURS) or "")
    assert "--allow-remote steps" in refused["data"]["message"]
    small = Terms(extended=True, max_message_bytes=10)
    assert "--max-message-size-mb" in json.loads(str(read('{"type":"state"}', small)))["data"]["message"]
