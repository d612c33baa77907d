"""``SyncEnvClient`` interrupted at any point of its way through the package."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from openenv_gym.errors import SessionLostError, SessionStateError
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.talking import TalkClient, serve_talk
from tests.openenv_gym.transports.conftest import interrupted_at

CALLS = {
    "step": lambda client: client.step("x"),
    "reset": lambda client: client.reset(),
    "state": lambda client: client.state(),
    "close": lambda client: client.close(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_an_interrupt_at_any_point_loses_no_more_than_the_session(call):
    # In a thread of its own: an exception that a trace function raises inside a handler may leave the interpreter's
    # record of the handled one behind, and every later traceback of the thread would tell of it.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt_everywhere, call).result()


@apart
def interrupt_everywhere(call):
    with serve_talk("ours", capacity=64) as url:
        client = TalkClient(url).sync()
        point, through = 1, False
        while not through:
            client.reset()
            try:
                with interrupted_at(point, within="openenv_gym/"):
                    CALLS[call](client)
                    through = True
            except KeyboardInterrupt:
                point += 37
            try:
                assert client.step("next").observation == "next"
            except (SessionLostError, SessionStateError):
                client.reset()
                assert client.step("again").observation == "again"
        client.close()
        assert point > 500
