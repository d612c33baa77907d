"""The ids in Gymnasium's registry."""

import subprocess
import sys

import gymnasium
from gymnasium.envs.registration import load_env_creator

from openenv_gym.registration import register_ids
from openenv_gym.vector import RemoteVectorEnv

IDS = {"openenv/remote-v0", "openenv/gym-v0", "openenv/echo-v0", "openenv/blackjack-v0"}


def test_importing_the_package_registers_the_ids():
    assert set(gymnasium.registry) >= IDS


def test_registering_again_changes_nothing():
    before = {env_id: gymnasium.registry[env_id] for env_id in IDS}
    register_ids()
    assert {env_id: gymnasium.registry[env_id] for env_id in IDS} == before


def test_entry_points_are_strings_so_that_a_spec_becomes_json():
    for env_id in IDS:
        spec = gymnasium.registry[env_id]
        assert gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()) == spec


def test_every_id_has_an_entry_point_for_vectors():
    for env_id in IDS:
        assert issubclass(load_env_creator(gymnasium.registry[env_id].vector_entry_point), RemoteVectorEnv)


def test_the_ids_are_there_without_the_client_being_imported():
    program = "import openenv_gym, sys; print('openenv_gym.env' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False"
