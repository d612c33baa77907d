"""Providers are descriptions, leases their running copies."""

import copy
import pickle

import pytest

from openenv_gym.errors import ProviderError
from openenv_gym.providers.base import Lease, Provider


class Recording(Provider):
    """A provider of the test's own: it notes what is done to it."""

    log: list = []

    def __init__(self, name, *, fails=None):
        self.name = name
        self.fails = fails
        self.running = False

    def configuration(self):
        return {"name": self.name, "fails": self.fails}

    def _do(self, what):
        self.log.append((what, self.name))
        if self.fails == what:
            raise ProviderError(f"{what} failed")

    def start(self):
        self._do("start")
        self.running = True
        return "http://started"

    def stop(self):
        self._do("stop")
        self.running = False

    def wait_for_ready(self, base_url, timeout_s=30.0):
        self._do("ready")


@pytest.fixture(autouse=True)
def log():
    Recording.log.clear()
    return Recording.log


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_holds_the_configuration_and_nothing_that_runs(duplicate):
    provider = Recording("a")
    provider.start()
    twin = duplicate(provider)
    assert (twin.name, twin.running) == ("a", False)


def test_leaving_the_block_stops_the_server(log):
    with Recording("a") as provider:
        provider.start()
    assert log == [("start", "a"), ("stop", "a")]


def test_a_lease_of_a_provider_runs_a_copy_and_stops_it_once(log):
    provider = Recording("a")
    lease = Lease.of_provider(provider)
    assert lease.base_url == "http://started"
    assert not lease.embedded
    assert not provider.running
    lease.release()
    lease.release()
    assert log == [("start", "a"), ("ready", "a"), ("stop", "a")]


@pytest.mark.parametrize("fails", ["start", "ready"])
def test_a_provider_that_fails_leaves_nothing_running(log, fails):
    with pytest.raises(ProviderError):
        Lease.of_provider(Recording("a", fails=fails))
    assert log[-1] == ("stop", "a")


def test_a_given_address_is_kept_and_releasing_it_does_nothing():
    lease = Lease("http://given")
    assert lease.renew() == "http://given"
    lease.release()


def test_renewing_asks_where_the_server_is_now():
    addresses = iter([("http://two", {"a": "b"})])
    lease = Lease("http://one", renew=lambda: next(addresses))
    assert lease.embedded
    assert lease.headers == {}
    assert lease.renew() == lease.base_url == "http://two"
    assert lease.headers == {"a": "b"}


def test_a_release_that_fails_can_be_tried_again():
    failures = [ArithmeticError("not yet")]

    def release():
        if failures:
            raise failures.pop()
        released.append(True)

    released: list[bool] = []
    lease = Lease("http://host", release=release)
    with pytest.raises(ArithmeticError):
        lease.release()
    for _ in range(2):
        lease.release()
    assert released == [True]
