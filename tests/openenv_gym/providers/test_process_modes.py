"""Embedded servers by mode, without starting any."""

import pickle

import pytest

from openenv_gym.providers import process
from openenv_gym.providers.process import ProcessProvider, lease_embedded


def test_a_description_knows_its_mode():
    provider = ProcessProvider("CartPole-v1", mode="production")
    assert pickle.loads(pickle.dumps(provider)).configuration() == provider.configuration()
    assert provider.configuration()["mode"] == "production"
    assert ProcessProvider("CartPole-v1").mode == "simulation"


def test_each_mode_of_a_target_has_a_server_of_its_own(monkeypatch):
    monkeypatch.setattr(process, "_shared", {})
    monkeypatch.setattr(ProcessProvider, "start", lambda self: f"http://{self.mode}")
    monkeypatch.setattr(ProcessProvider, "ended", lambda self: None)
    leases = [lease_embedded("CartPole-v1", mode) for mode in ("simulation", "production", "production")]
    assert [lease.base_url for lease in leases] == ["http://simulation", "http://production", "http://production"]
    assert len(process._shared) == 2
    for lease in leases:
        lease.release()
    assert not process._shared


def test_one_that_does_not_start_is_forgotten(monkeypatch):
    monkeypatch.setattr(process, "_shared", {})

    def fail(self):
        raise OSError("no")

    monkeypatch.setattr(ProcessProvider, "start", fail)
    with pytest.raises(OSError, match="no"):
        lease_embedded("CartPole-v1", "production")
    assert not process._shared
