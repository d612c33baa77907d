"""What a production server tells of failed calls; the rest of ``rpc_tools`` has its tests in ``test_rpc_tools.py``."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from openenv.core.env_server.mcp_environment import MCPEnvironment as StockEnvironment
from openenv.core.env_server.mcp_types import CallToolAction as StockCall
from openenv.core.env_server.mcp_types import CallToolObservation as StockCalled
from openenv.core.env_server.types import Observation as StockObservation
from openenv.core.env_server.types import State as StockState

from openenv_gym.types import Observation
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.rpc_tools import call_tool
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.climbing import SECRET
from tests.openenv_gym_server.test_rpc_tools import error_of, hosting


def test_production_hides_why_an_authors_object_cannot_be_sent() -> None:
    class Unreadable(list[int]):
        def __iter__(self) -> Any:
            raise FileNotFoundError(SECRET)

    class Plain(MCPEnvironment):
        @tool
        def look(self) -> Any:
            return Unreadable([1])

        def reset(self, **kwargs: Any) -> Observation:
            return Observation()

    for mode, told in (("simulation", True), ("production", False)):
        assert (SECRET in error_of(call_tool(hosting(Plain(), mode), "look", {}))[1]) is told


class OfStock(StockEnvironment):
    """OpenEnv's own class with a FastMCP server, whose tools are called without its step."""

    def __init__(self) -> None:
        mcp = FastMCP("stock")

        @mcp.tool
        def look(how: str) -> str:
            raise ToolError("no such door") if how == "told" else FileNotFoundError(f"{SECRET} not found")

        super().__init__(mcp)

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        return StockObservation()

    def _step_impl(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    @property
    def state(self) -> Any:
        return StockState()


SLIPPED = "Error calling tool 'look': it raised FileNotFoundError; its operator finds the reason in the server's log"


@pytest.mark.parametrize(
    ("name", "arguments", "production", "simulation"),
    [
        ("look", {"how": "told"}, "no such door", "no such door"),
        ("look", {"how": "raise"}, SLIPPED, f"Error calling tool 'look': {SECRET} not found"),
    ],
)
def test_of_openenvs_own_class_production_tells_what_was_raised_to_be_read(
    name: str, arguments: dict[str, Any], production: str, simulation: str, caplog: pytest.LogCaptureFixture
) -> None:
    models = Models(StockCall, StockCalled)
    for mode, expected in (("production", production), ("simulation", simulation)):
        hosted = hosting(OfStock(), mode, models)
        assert error_of(call_tool(hosted, name, arguments))[1] == expected
    assert (SECRET in caplog.text) is (production != simulation)
