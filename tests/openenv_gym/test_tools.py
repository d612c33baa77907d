"""The data classes of tool calls, beside OpenEnv's own."""

import pytest
from openenv.core.env_server import mcp_types as stock
from pydantic import ValidationError

from openenv_gym import tools

CLASSES = [
    "Tool",
    "ToolError",
    "ListToolsAction",
    "CallToolAction",
    "ListToolsObservation",
    "CallToolObservation",
]


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_has_the_fields_and_defaults_of_openenvs(name):
    ours, theirs = getattr(tools, name).model_fields, getattr(stock, name).model_fields
    assert list(ours) == list(theirs)
    for field in ours:
        assert ours[field].is_required() == theirs[field].is_required()
        assert ours[field].get_default(call_default_factory=True) == theirs[field].get_default(
            call_default_factory=True
        )


@pytest.mark.parametrize("name", CLASSES)
def test_unknown_fields_are_refused(name):
    with pytest.raises(ValidationError, match="unheard_of"):
        getattr(tools, name).model_validate({"unheard_of": 1})


def test_the_kinds_of_failure_are_openenvs():
    assert {each.name: each.value for each in tools.ToolErrorType} == {
        each.name: each.value for each in stock.ToolErrorType
    }


def test_the_reserved_names_are_openenvs():
    assert tools.RESERVED_TOOL_NAMES == stock.RESERVED_TOOL_NAMES
