"""The embedded server as a provider."""

import os
import pickle
import subprocess
import sys

import pytest

from openenv_gym.providers import process
from openenv_gym.providers.embedded import EmbeddedProvider


def test_two_shares_are_one_process_that_ends_with_the_last():
    with EmbeddedProvider("CartPole-v1") as first, EmbeddedProvider("CartPole-v1") as second:
        assert first.headers == {}
        assert first.start() == second.start() == first.start()
        assert first.headers["Authorization"].startswith("Bearer ")
        first.wait_for_ready(first.start())
        assert process._shared["CartPole-v1", "simulation"].users == 2
    assert ("CartPole-v1", "simulation") not in process._shared
    first.stop()


def test_a_pickle_is_its_description():
    twin = pickle.loads(pickle.dumps(EmbeddedProvider("CartPole-v1")))
    assert (type(twin), twin.configuration()) == (EmbeddedProvider, {"target": "CartPole-v1"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_has_a_server_of_its_own_which_its_close_stops():
    script = """
import os
from openenv_gym.generic_client import GenericEnvClient
from openenv_gym.providers import process
from openenv_gym.providers.embedded import EmbeddedProvider
client = GenericEnvClient(provider=EmbeddedProvider("CartPole-v1")).sync()
client.reset()
address = client.base_url
if os.fork() == 0:
    client.reset()
    [server] = process._shared.values()
    assert (client.base_url, server.users) == (server.base_url, 1) != (address, 1)
    client.close()
    assert server.provider.ended() == "it was not started"
    os._exit(0)
assert os.wait()[1] == 0
assert client.state() and client.base_url == address
client.close()
"""
    # Python 3.12 and later warn of any fork beside threads, and here the keeper's is one.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("", "", 0)
