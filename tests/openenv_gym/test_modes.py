"""Which mode a client is for."""

import pytest

from openenv_gym.errors import ModeError, SettingsError
from openenv_gym.modes import mode_of_vector, read_mode, require_simulation


@pytest.mark.parametrize("mode", ["simulation", "Simulation", "PRODUCTION"])
def test_the_mode_is_read_in_any_letter_case(mode):
    assert read_mode(mode) == mode.lower()


@pytest.mark.parametrize(
    ("variable", "mode"),
    [(None, "simulation"), ("", "simulation"), ("Production", "production"), (" production ", "production")],
)
def test_the_environment_says_the_mode_where_the_caller_does_not(monkeypatch, variable, mode):
    monkeypatch.delenv("OPENENV_CLIENT_MODE", raising=False)
    if variable is not None:
        monkeypatch.setenv("OPENENV_CLIENT_MODE", variable)
    assert read_mode(None) == mode
    assert read_mode("simulation") == "simulation"


def test_a_mode_that_does_not_exist_is_refused_with_its_source_and_the_modes_there_are(monkeypatch):
    for mode in ("training", 3):
        with pytest.raises(SettingsError, match="expected mode to be 'simulation' or 'production'") as caught:
            read_mode(mode)
        assert caught.value.setting == "mode"
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "nonsense")
    with pytest.raises(SettingsError, match="OPENENV_CLIENT_MODE"):
        read_mode(None)


def test_what_production_does_not_have_names_what_it_has():
    require_simulation("simulation", "reset")
    with pytest.raises(ModeError, match=r"reset\(\).*call_tool") as caught:
        require_simulation("production", "reset")
    assert caught.value.mode == "production"


def test_a_vector_is_for_simulation_and_says_who_asked_for_production_and_what_to_do(monkeypatch):
    monkeypatch.delenv("OPENENV_CLIENT_MODE", raising=False)
    assert [mode_of_vector(mode) for mode in (None, "Simulation")] == ["simulation", "simulation"]
    with pytest.raises(ModeError, match=r"mode='Production'.*mode='simulation'.*vectorization_mode='sync'") as caught:
        mode_of_vector("Production")
    assert caught.value.mode == "production"
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "production")
    with pytest.raises(ModeError, match="OPENENV_CLIENT_MODE is 'production'"):
        mode_of_vector(None)
    assert mode_of_vector("simulation") == "simulation"
