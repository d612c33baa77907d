"""``listener``."""

import socket

import pytest

from openenv_gym.transports.listening import listener


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connections_send_at_once(host):
    with (
        listener(host, 0) as listening,
        socket.create_connection(listening.getsockname()[:2], timeout=10),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_refused():
    with listener("127.0.0.1", 0) as listening, pytest.raises(OSError, match=r"."):
        listener("127.0.0.1", listening.getsockname()[1])
