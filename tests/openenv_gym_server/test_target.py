"""What can be served by name."""

import itertools
import sys
import types

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gymnasium.envs.classic_control import CartPoleEnv

from openenv_gym.errors import SettingsError
from openenv_gym.types import State
from openenv_gym_server import ConcurrencyConfigurationError, Environment, MCPEnvironment, ServerSettings, tool
from openenv_gym_server.precedence import held
from openenv_gym_server.target import load_app
from tests.sockets import ask
from tests.text_envs import Echo, Heard, Say


@pytest.fixture
def module(monkeypatch):
    """An importable module of the test's own, empty."""
    made = types.ModuleType("a_module_of_the_test")
    made.__spec__ = types.SimpleNamespace(name=made.__name__, loader=None)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


@pytest.mark.filterwarnings("ignore:.*latest versioned environment:UserWarning")
@pytest.mark.parametrize("target", ["CartPole-v1", "CartPole", "gymnasium:CartPole-v1", "openenv_gym_envs.echo"])
def test_ids_and_packages_are_told_apart(target):
    assert isinstance(load_app(target), FastAPI)


def test_an_attribute_may_be_an_app_or_make_one(module):
    app = FastAPI()
    seen = []
    module.app = app
    module.make = lambda settings: seen.append(settings) or app
    settings = ServerSettings(max_concurrent_envs=3)
    assert load_app(f"{module.__name__}:app", settings) is app
    assert load_app(f"{module.__name__}:make", settings) is app
    assert seen == [settings]


def test_a_package_with_an_app_alone_is_served(module):
    module.app = FastAPI()
    assert load_app(module.__name__) is module.app


@pytest.mark.parametrize("attribute", ["missing", "number", "make"])
def test_an_attribute_that_is_no_app_is_refused(module, attribute):
    module.number = 3
    module.make = lambda settings: 3
    with pytest.raises(SettingsError) as caught:
        load_app(f"{module.__name__}:{attribute}")
    assert caught.value.setting == "target"


@pytest.mark.parametrize("target", ["no_such_package_anywhere", "no.such.package", "..", ""])
def test_a_name_of_nothing_is_refused(target):
    with pytest.raises(SettingsError) as caught:
        load_app(target)
    assert caught.value.setting == "target"


def test_an_unknown_id_is_refused_with_a_suggestion():
    with pytest.raises(SettingsError, match="CartPole"):
        load_app("CartPoole-v1")


def test_an_id_that_only_its_package_registers_is_refused_with_the_way_to_name_it():
    with pytest.raises(SettingsError, match='"package:nowhere/Maze-v0"'):
        load_app("nowhere/Maze-v0")


def test_keyword_arguments_are_for_gymnasium_ids():
    with pytest.raises(SettingsError) as caught:
        load_app("openenv_gym_envs.echo", env_kwargs={"a": 1})
    assert caught.value.setting == "env_kwargs"


@pytest.mark.parametrize("target", ["openenv_gym_envs.echo", "openenv_gym_envs.echo:EchoEnvironment"])
def test_names_of_actions_are_for_gymnasium_ids(target):
    with pytest.raises(SettingsError) as caught:
        load_app(target, named_actions={"left": 0})
    assert caught.value.setting == "named_actions"


@pytest.mark.parametrize("target", ["CartPole-v1", "openenv_gym_envs.blackjack.environment:BlackjackEnvironment"])
def test_code_is_refused_where_there_are_no_tools_that_it_could_call(target: str) -> None:
    with pytest.raises(SettingsError, match="--allow-code") as caught:
        load_app(target, ServerSettings(allow_code=True), given={"allow_code": "--allow-code"})
    assert caught.value.setting == "allow_code"


# ------------------------------------------------------------------------------------ apps that a module makes itself

_numbers = itertools.count()
MAKES = "from openenv_gym_server import ServerSettings, create_app\nfrom tests.text_envs import Echo, Heard, Say\n"
GIVEN = {"step_timeout_s": "--step-timeout"}
FIVE = ServerSettings(step_timeout_s=5.0)


@pytest.fixture
def written(monkeypatch, tmp_path):
    """Writes a module that was never imported; gives its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text):
        name = f"a_written_module_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)
        return name

    return write


@pytest.mark.parametrize(
    "text",
    [
        "app = create_app(Echo, Say, Heard)",
        "app = create_app(Echo, Say, Heard, settings=ServerSettings(step_timeout_s=1.0))",
        "from fastapi import FastAPI\napp = FastAPI()\napp.mount('/env', create_app(Echo, Say, Heard))",
        "def app(settings):\n    return create_app(Echo, Say, Heard, settings=settings)",
        "def app(settings):\n    return create_app(Echo, Say, Heard)",
        "def __getattr__(name):\n    return create_app(Echo, Say, Heard)",
    ],
)
def test_what_was_given_holds_for_an_app_that_the_module_makes(written, text):
    app = load_app(f"{written(MAKES + text)}:app", FIVE, given=GIVEN)
    assert [server.settings.step_timeout_s for server in held(app)] == [5.0]


@pytest.mark.parametrize(
    "text",
    [
        "from fastapi import FastAPI\napp = FastAPI()",
        "from fastapi import FastAPI\ndef app(settings):\n    return FastAPI()",
        "from openenv_gym_envs.blackjack.app import app",
    ],
)
def test_what_cannot_hold_is_refused_by_its_options(written, text):
    import openenv_gym_envs.blackjack.app  # noqa: F401 - made before, so that nothing can hold for it

    name = written(text)
    given = {**GIVEN, "mode": "--mode", "token": "--token"}
    with pytest.raises(SettingsError, match=r"^--step-timeout and --mode cannot hold for .*: it is no app that"):
        load_app(f"{name}:app", FIVE, given=given)


def test_a_module_that_was_imported_before_is_refused_what_was_given(module):
    module.app = FastAPI()
    with pytest.raises(SettingsError, match="a_module_of_the_test was imported already") as caught:
        load_app(f"{module.__name__}:app", FIVE, given=GIVEN)
    assert caught.value.setting == "step_timeout_s"


def test_a_token_holds_for_every_app_but_one_with_another(written):
    settings = ServerSettings(token="secret")
    for text in ("from fastapi import FastAPI\napp = FastAPI()", MAKES + "app = create_app(Echo, Say, Heard)"):
        with TestClient(load_app(f"{written(text)}:app", settings, given={"token": "--token"})) as client:
            assert client.get("/schema").status_code == 401
            headers = {"Authorization": "Bearer secret"}
            assert client.get("/schema", headers=headers).status_code in {200, 404}
    name = written(MAKES + "app = create_app(Echo, Say, Heard, settings=ServerSettings(token='other'))")
    load_app(f"{name}:app")
    with pytest.raises(SettingsError, match="--token cannot hold"):
        load_app(f"{name}:app", settings, given={"token": "--token"})


def test_a_token_goes_over_the_authors_own(written):
    name = written(MAKES + "app = create_app(Echo, Say, Heard, settings=ServerSettings(token='other'))")
    with TestClient(load_app(f"{name}:app", ServerSettings(token="secret"), given={"token": "--token"})) as client:
        assert client.get("/schema", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert client.get("/schema", headers={"Authorization": "Bearer other"}).status_code == 401


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, ModuleNotFoundError, SystemExit])
def test_what_a_module_raises_itself_comes_out(written, kind):
    name = written(f"raise {kind.__name__}('its own')")
    with pytest.raises(kind, match="its own"):
        load_app(f"{name}:app")


def test_a_capacity_that_the_modules_environment_cannot_bear_is_told_as_that(written, monkeypatch):
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", "4")
    text = "class One(Echo):\n    SUPPORTS_CONCURRENT_SESSIONS = False\napp = create_app(One, Say, Heard)"
    with pytest.raises(ConcurrencyConfigurationError):
        load_app(f"{written(MAKES + text)}:app")


def test_a_name_that_the_module_does_not_have_is_told_with_the_nearest(module):
    module.app = FastAPI()
    with pytest.raises(SettingsError, match=r"has no 'ap'; did you mean app\?"):
        load_app(f"{module.__name__}:ap")


# ------------------------------------------------------------------------------------------- classes of environments


class Doors(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, word="door"):
        super().__init__()
        self.word = word

    def reset(self, seed=None):
        return Heard(echo=self.word)

    @tool
    def look(self) -> str:
        """Look around."""
        return f"a {self.word}"


class Silent(Environment):
    def reset(self, seed=None):
        return Heard()

    def step(self, action):
        return Heard()


def test_the_class_of_an_environment_with_tools_is_served_directly(module):
    module.Doors = Doors
    app = load_app(f"{module.__name__}:Doors", FIVE, env_kwargs={"word": "gate"}, given=GIVEN)
    assert held(app)[0].settings.step_timeout_s == 5.0
    with TestClient(app) as client, client.websocket_connect("/ws") as socket:
        assert ask(socket, {"type": "reset"})["data"]["observation"]["echo"] == "gate"
        call = {"type": "call_tool", "tool_name": "look", "arguments": {}}
        assert ask(socket, {"type": "step", "data": call})["data"]["observation"]["result"]["data"] == "a gate"


def test_the_class_of_an_environment_that_names_its_models_is_served_directly(module):
    class Named(Echo, Environment[Say, Heard, State]):
        pass

    module.Named = Named
    with TestClient(load_app(f"{module.__name__}:Named")) as client:
        assert set(client.get("/schema").json()["action"]["properties"]) >= {"message", "volume"}


def test_the_class_of_an_environment_that_names_no_models_is_refused_with_what_to_write(module):
    module.Silent = Silent
    with pytest.raises(SettingsError, match=r"class Silent\(Environment\[.*app = create_app\(Silent, .*serve .*:app"):
        load_app(f"{module.__name__}:Silent")


def test_keyword_arguments_that_the_class_does_not_take_are_refused(module):
    module.Doors = Doors
    with pytest.raises(SettingsError, match=r"got \['colour'\]") as caught:
        load_app(f"{module.__name__}:Doors", env_kwargs={"colour": 1})
    assert caught.value.setting == "env_kwargs"


def test_the_class_of_a_gymnasium_environment_has_all_settings(module):
    module.Pole = CartPoleEnv
    app = load_app(f"{module.__name__}:Pole", FIVE, given=GIVEN)
    assert held(app)[0].settings.step_timeout_s == 5.0
