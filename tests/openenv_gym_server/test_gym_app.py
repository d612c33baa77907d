"""The application that serves a Gymnasium environment."""

import contextlib

import gymnasium
import pytest
from fastapi.testclient import TestClient
from gymnasium.envs.registration import EnvSpec

from openenv_gym.errors import SettingsError, SpaceMappingError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.spaces import space_from_json
from openenv_gym_server.app import create_app
from openenv_gym_server.gym_app import GymFactory, create_gym_app
from openenv_gym_server.gym_environment import GymEnvironment, InlineGymEnvironment
from openenv_gym_server.settings import ServerSettings
from tests.exactness.synthetic import Failing, OldestApi, Synthetic


@contextlib.contextmanager
def client_of(app):
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


@contextlib.contextmanager
def socket_of(app, **settings):
    """A socket under our subprotocol, with its environment opened."""
    with client_of(app) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        socket.send_json({"type": "x-open", "data": settings})
        yield socket, socket.receive_json()


def ask(socket, **message):
    socket.send_json(message)
    return socket.receive_json()


def test_schema_carries_the_spaces():
    with client_of(create_gym_app("CartPole-v1")) as client:
        schema = client.get("/schema").json()
    local = gymnasium.make("CartPole-v1")
    assert space_from_json(schema["action"]["properties"]["action"]["x-gymnasium-space"]) == local.action_space
    assert space_from_json(schema["observation"]["properties"]["obs"]["x-gymnasium-space"]) == local.observation_space
    local.close()


def test_metadata_has_the_gymnasium_block():
    with client_of(create_gym_app("CartPole-v1")) as client:
        metadata = client.get("/metadata").json()
    assert metadata["name"] == "CartPole-v1"
    assert metadata["gymnasium"]["env_id"] == "CartPole-v1"
    assert metadata["gymnasium"]["max_episode_steps"] == 500


def test_an_episode_over_the_socket():
    with client_of(create_gym_app("CartPole-v1")) as client, client.websocket_connect("/ws") as socket:
        first = ask(socket, type="reset", data={"seed": 3, "episode_id": "mine"})["data"]
        assert first["reward"] is None
        assert first["metadata"] == {"terminated": False, "truncated": False, "info": {}}
        done = False
        steps = 0
        while not done:
            reply = ask(socket, type="step", data={"action": 1})["data"]
            done, steps = reply["done"], steps + 1
        assert reply["metadata"]["terminated"] is True
        assert ask(socket, type="state")["data"] == {
            "episode_id": "mine",
            "step_count": steps,
            "env_id": "CartPole-v1",
        }


def test_an_action_outside_the_space_is_refused_and_changes_nothing():
    with client_of(create_gym_app("CartPole-v1")) as client, client.websocket_connect("/ws") as socket:
        ask(socket, type="reset", data={"seed": 3})
        for data in ({"action": 7}, {"action": 1, "extra": 0}, {}, {"action": None}):
            refused = ask(socket, type="step", data=data)
            assert (refused["type"], refused["data"]["code"]) == ("error", "VALIDATION_ERROR")
        assert ask(socket, type="state")["data"]["step_count"] == 0
        assert ask(socket, type="step", data={"action": 1})["type"] == "observation"


@pytest.mark.parametrize(("source", "hint"), [("CartPol-v1", "CartPole"), ("CartPole-v9", "`v1`")])
def test_an_unknown_id_fails_when_the_application_is_made(source, hint):
    with pytest.raises(gymnasium.error.Error, match=hint):
        create_gym_app(source)


def test_an_environment_that_cannot_be_made_fails_when_the_application_is_made():
    with pytest.raises(ArithmeticError, match="factory"):
        create_gym_app(Failing, env_kwargs={"fail_in": "factory"})
    with pytest.raises(TypeError):
        create_gym_app(Synthetic())
    with pytest.raises(SpaceMappingError):
        create_gym_app(type("Bare", (Synthetic,), {"action_space": gymnasium.Space()}))


def test_the_operators_arguments_reach_every_environment():
    app = create_gym_app("FrozenLake-v1", env_kwargs={"map_name": "8x8"})
    with socket_of(app) as (_, opened):
        assert opened["data"]["schema"]["observation"]["properties"]["obs"]["maximum"] == 63


def test_a_sessions_arguments_go_over_the_operators_where_they_are_allowed():
    settings = ServerSettings(allowed_env_kwargs=frozenset({"map_name"}))
    app = create_gym_app("FrozenLake-v1", env_kwargs={"map_name": "8x8", "is_slippery": False}, settings=settings)
    with socket_of(app, env_kwargs={"map_name": "4x4"}) as (socket, opened):
        assert opened["data"]["schema"]["observation"]["properties"]["obs"]["maximum"] == 15
        ask(socket, type="reset", data={"seed": 0})
        assert ask(socket, type="step", data={"action": 1})["data"]["metadata"]["info"] == {"prob": 1.0}


def test_a_sessions_arguments_are_refused_where_they_are_not_allowed():
    with socket_of(create_gym_app("FrozenLake-v1"), env_kwargs={"map_name": "4x4"}) as (_, refused):
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert "allowed_env_kwargs" in refused["data"]["message"]


def test_a_session_chooses_its_render_mode():
    with socket_of(create_gym_app("FrozenLake-v1"), render_mode="ansi") as (socket, opened):
        assert opened["data"]["render_mode"] == "ansi"
        ask(socket, type="reset", data={"seed": 0})
        assert "FFF" in ask(socket, type="x-render")["data"]["value"]


@pytest.mark.parametrize("opening", [{"render_mode": "human"}, {"env_kwargs": {"render_mode": "human"}}])
@pytest.mark.parametrize("source", ["CartPole-v1", Synthetic, OldestApi])
def test_no_client_can_have_a_window_opened_on_the_servers_machine(source, opening, monkeypatch):
    made = []
    monkeypatch.setattr(GymFactory, "__call__", lambda self, **kwargs: made.append(kwargs))
    app = create_app(GymFactory(source), dict, dict, settings=ServerSettings(allowed_env_kwargs="all"))
    with socket_of(app, **opening) as (_, refused):
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert refused["data"]["errors"][0]["loc"][-1] == "render_mode"
        assert "window" in refused["data"]["message"]
    assert made == []


class Filming(gymnasium.Env):
    """Keeps a bounded list of frames itself."""

    metadata = {"render_modes": ["rgb_array", "rgb_array_list"], "render_fps": 1}
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    closed: list[str] = []

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

    def render(self):
        return ["a frame"]

    def close(self):
        self.closed.append(self.render_mode)


class Posing(Filming):
    """Has single frames alone."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}


@pytest.mark.parametrize(
    "opening", [{"render_mode": "rgb_array_list"}, {"env_kwargs": {"render_mode": "rgb_array_list"}}]
)
def test_a_list_of_frames_that_gymnasium_would_keep_here_is_refused_and_one_of_the_environments_own_is_not(opening):
    settings = ServerSettings(allowed_env_kwargs="all")
    posing = create_gym_app(EnvSpec("Posing-v0", entry_point=Posing), settings=settings)
    before = len(Posing.closed)
    with socket_of(posing, **opening) as (socket, refused):
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert "'rgb_array'" in refused["data"]["message"]
        assert Posing.closed[before:] == ["rgb_array"]
        assert ask(socket, type="x-open", data={"render_mode": "rgb_array"})["type"] == "x-open"
    filming = create_gym_app(EnvSpec("Filming-v0", entry_point=Filming), settings=settings)
    with socket_of(filming, **opening) as (socket, opened):
        assert opened["data"]["render_mode"] == "rgb_array_list"
        ask(socket, type="reset")
        assert ask(socket, type="x-render")["data"]["value"] == ["a frame"]


def test_the_operator_may_render_as_they_like():
    with client_of(create_gym_app("CartPole-v1", env_kwargs={"render_mode": "rgb_array_list"})) as client:
        assert client.post("/reset").status_code == 200


def test_attributes_behind_the_wrappers_are_reachable_where_they_are_allowed():
    settings = ServerSettings(remote_names=frozenset({"gravity"}))
    with socket_of(create_gym_app("CartPole-v1", settings=settings)) as (socket, _):
        assert ask(socket, type="x-get_attr", data={"name": "gravity"})["data"]["value"] == 9.8


def test_mode_and_capacity_are_passed_on():
    with client_of(create_gym_app("CartPole-v1", mode="production")) as client:
        assert client.post("/reset").status_code == 404
    with (
        client_of(create_gym_app("CartPole-v1", max_concurrent_envs=1)) as client,
        client.websocket_connect("/ws") as first,
    ):
        assert ask(first, type="reset")["type"] == "observation"
        with client.websocket_connect("/ws") as second:
            assert second.receive_json()["data"]["code"] == "CAPACITY_REACHED"
    with pytest.raises(SettingsError):
        create_gym_app("CartPole-v1", max_concurrent_envs=2, settings=ServerSettings(max_concurrent_envs=3))


def test_many_sessions_by_default():
    with (
        client_of(create_gym_app("CartPole-v1")) as client,
        client.websocket_connect("/ws") as first,
        client.websocket_connect("/ws") as second,
    ):
        assert ask(first, type="reset", data={"seed": 1}) == ask(second, type="reset", data={"seed": 1})


def test_failures_are_told_and_the_session_goes_on():
    with client_of(create_gym_app(Failing)) as client, client.websocket_connect("/ws") as socket:
        failed = ask(socket, type="reset", data={"options": {"fail": True}})["data"]
        assert failed["code"] == "EXECUTION_ERROR"
        assert "options" in failed["message"]
        ask(socket, type="reset", data={"seed": 0})
        assert ask(socket, type="step", data={"action": 3})["data"]["code"] == "EXECUTION_ERROR"
        assert ask(socket, type="step", data={"action": 0})["type"] == "observation"


def test_an_old_environment_is_served():
    with client_of(create_gym_app(OldestApi, env_kwargs={"limit": 1})) as client:
        assert client.get("/metadata").json()["gymnasium"]["render_modes"] == ["rgb_array", "ansi"]
        with client.websocket_connect("/ws") as socket:
            ask(socket, type="reset", data={"seed": 0})
            metadata = ask(socket, type="step", data={"action": 2})["data"]["metadata"]
            assert (metadata["terminated"], metadata["truncated"]) == (False, True)
            assert metadata["info"] == {"action": 2, "TimeLimit.truncated": True}


def test_only_classic_control_runs_on_the_event_loop():
    for env_id, kind in (("CartPole-v1", InlineGymEnvironment), ("FrozenLake-v1", GymEnvironment)):
        environment = GymFactory(env_id)()
        assert type(environment) is kind
        environment.close()


def test_the_factory_is_named_after_what_it_makes():
    assert GymFactory("CartPole-v1").__name__ == "CartPole-v1"
    assert GymFactory(gymnasium.spec("CartPole-v1")).__name__ == "CartPole-v1"
    assert GymFactory(Synthetic).__name__ == "Synthetic"
    assert GymFactory(GymFactory(Synthetic)).__name__ == "Synthetic"


class Needy(Synthetic):
    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError("size is at least 1")
        self.observation_space = gymnasium.spaces.Discrete(size)


class Unclosable(Synthetic):
    def close(self):
        raise ValueError("close failed")


ANY_KWARGS = ServerSettings(allowed_env_kwargs="all")


@pytest.fixture
def needy_id():
    gymnasium.register("Needy-v0", entry_point=Needy)
    yield "Needy-v0"
    del gymnasium.registry["Needy-v0"]


@pytest.mark.parametrize("by_id", [True, False], ids=["id", "class"])
def test_what_an_environment_needs_may_come_from_its_clients(needy_id, by_id, caplog):
    app = create_gym_app(needy_id if by_id else Needy, settings=ANY_KWARGS)
    with client_of(app) as client:
        assert client.get("/schema").status_code == 500
        assert client.get("/ready").json()["status"] == "unavailable"
    with socket_of(app, env_kwargs={"size": 3}) as (_, opened):
        assert opened["data"]["schema"]["observation"]["properties"]["obs"]["maximum"] == 2
        assert opened["data"]["metadata"]["name"] == ("Needy-v0" if by_id else "Needy")


def test_what_no_client_can_give_fails_when_the_application_is_made(needy_id):
    for source in (needy_id, Needy):
        with pytest.raises(TypeError, match="size"):
            create_gym_app(source)
    with pytest.raises(TypeError, match="expected an environment id"):
        create_gym_app(Synthetic(), settings=ANY_KWARGS)
    with pytest.raises(gymnasium.error.Error):
        create_gym_app("NoSuch-v0", settings=ANY_KWARGS)
    with pytest.raises(SpaceMappingError):
        create_gym_app(type("Bare", (Synthetic,), {"action_space": gymnasium.Space()}), settings=ANY_KWARGS)
    missing = EnvSpec("Missing-v0", entry_point="no_such_module_anywhere:Env")
    with pytest.raises(ModuleNotFoundError):
        create_gym_app(missing, settings=ANY_KWARGS)


def test_an_environment_that_cannot_be_closed_is_served(caplog):
    with client_of(create_gym_app(Unclosable)) as client:
        assert client.post("/reset").status_code == 200
    assert "close failed" in caplog.text


def test_no_environment_is_made_at_the_start_for_an_id_whose_clients_give_keywords(monkeypatch):
    monkeypatch.setattr(GymFactory, "__call__", lambda self: pytest.fail("made"))
    create_gym_app("CartPole-v1", settings=ANY_KWARGS)


def test_options_that_are_no_object_are_refused_with_their_place():
    with client_of(create_gym_app("CartPole-v1")) as client:
        with client.websocket_connect("/ws") as socket:
            refused = ask(socket, type="reset", data={"options": 5})["data"]
            assert refused["code"] == "VALIDATION_ERROR"
            assert refused["errors"][0]["loc"] == ["data", "options"]
            assert ask(socket, type="reset", data={"options": None})["type"] == "observation"
        answer = client.post("/reset", json={"options": 5})
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"] == ["body", "options"]


def test_an_old_environment_is_ready():
    with client_of(create_gym_app(OldestApi)) as client:
        assert client.get("/ready").json()["status"] == "ready"
