"""What a server process is told and how it reads it; what it then serves, ``test_serve.py`` tests."""

import json
import socket

import pytest
import typer

from openenv_gym.cli.serving import Service, run, url_of
from openenv_gym.errors import SettingsError


def test_a_service_survives_json():
    service = Service(
        target="CartPole-v1",
        fields={"max_concurrent_envs": 3, "remote_names": ["a"], "shards": [":1"]},
        given={"shards": "--workers"},
        env_kwargs=["a=(1, 2)"],
        options={"log_level": "info"},
        named_actions="left=0",
    )
    again = Service(**json.loads(json.dumps(vars(service))))
    assert again == service
    assert again.settings().remote_names == {"a"}
    assert again.keywords() == {"a": (1, 2)}
    assert again.actions() == {"left": 0}


def test_keyword_arguments_are_read_as_meant():
    entries = ["a=1", "b=null", 'c="1"', "d=8x8", "e=a=b", "f=False", "g=(1, 2)"]
    assert Service(target="", env_kwargs=entries).keywords() == {
        "a": 1,
        "b": None,
        "c": "1",
        "d": "8x8",
        "e": "a=b",
        "f": False,
        "g": (1, 2),
    }


@pytest.mark.parametrize("entry", ["novalue", "=1", "a b=1"])
def test_a_keyword_argument_without_name_or_value_is_refused(entry):
    with pytest.raises(SettingsError) as caught:
        Service(target="", env_kwargs=[entry]).keywords()
    assert caught.value.setting == "env_kwargs"


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("", {}),
        ("left=0,right=2", {"left": 0, "right": 2}),
        (" left = 0 , right=2, ", None),
        ("left=0, right=2,", {"left": 0, "right": 2}),
        ('{"push": [0.5, -1], "2": 1}', {"push": [0.5, -1], "2": 1}),
        ('{"push": ', None),
        ("left", None),
        ("aim=[1,2],wait=0", None),
        ("left=0,left=1", None),
        ("=0", None),
    ],
)
def test_actions_with_a_name_are_read_as_pairs_or_as_json(text, actions):
    service = Service(target="", named_actions=text)
    if actions is not None:
        assert service.actions() == actions
        return
    with pytest.raises(SettingsError, match="--named-actions") as caught:
        service.actions()
    assert caught.value.setting == "named_actions"


def test_nothing_listens_before_there_is_something_to_serve():
    def listen():
        raise AssertionError("it listened")

    with pytest.raises(SettingsError):
        run(Service(target="no_such_module_anywhere"), listen, print)


def test_what_a_module_raises_is_told_and_ends_the_program(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_module_that_raises.py").write_text("raise RuntimeError('its own words')\n")
    with pytest.raises(typer.Exit) as caught:
        run(Service(target="a_module_that_raises:app"), lambda: None, print)
    assert caught.value.exit_code == 1
    assert "its own words" in capsys.readouterr().err


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_url_of_a_listener_has_its_host_and_port(host, shown):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        assert url_of(listener) == f"http://{shown}:{listener.getsockname()[1]}"
