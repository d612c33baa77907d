"""Docstrings taken apart, as FastMCP takes them apart."""

import asyncio

import pytest
from fastmcp import FastMCP

from openenv_gym_server.docstrings import described

GOOGLE = """Look around.

    More of it,
    over two lines.

    Example:
        >>> look()

    Args:
        where (str, optional): the direction: north
            or south

            and a paragraph
        how: carefully

    Returns:
        a door
    """
NUMPY = """Look around.

    Parameters
    ----------
    where : str
        the direction
    how
        carefully
        and slowly

    Returns
    -------
    str
        a door
    """
SPHINX = """Look around.

    :param where: the direction
        or none
    :param str how: carefully
    :type where: str
    :returns: a door
    """
PLAIN = """Look around. Args: none that matter.

    Returns:
        a door
    """
TITLE_ALONE = """Look around.

    Args:
    and that is all.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX, PLAIN, TITLE_ALONE, "Look around.", ""])
def test_it_is_read_as_fastmcp_reads_it(docstring):
    def look(where: str, how: str) -> str:
        return ""

    look.__doc__ = docstring
    server = FastMCP("test")
    server.tool(look)
    (tool,) = asyncio.run(server.list_tools())
    ours = described(docstring)
    assert ours.summary == (tool.description or "")
    theirs = {name: schema.get("description") for name, schema in tool.parameters["properties"].items()}
    assert {name: ours.parameters.get(name) for name in ("where", "how")} == theirs


def test_the_three_styles_are_read():
    for docstring in (GOOGLE, NUMPY, SPHINX):
        summary, parameters = described(docstring)
        assert summary.startswith("Look around.")
        assert set(parameters) == {"where", "how"}
    assert described(GOOGLE).parameters["where"] == "the direction: north\nor south\n\nand a paragraph"
    assert described(NUMPY).parameters["how"] == "carefully\nand slowly"
    assert described(None) == ("", {})


def test_one_text_may_describe_several_parameters():
    text = "Add.\n\nParameters\n----------\na, b : int\n    a number\n"
    assert described(text).parameters == {"a": "a number", "b": "a number"}


def test_a_docstring_that_describes_no_parameter_is_all_summary():
    assert described(PLAIN).summary.endswith("a door")
    assert described("Add.\n\nArgs:\n    nothing of that form\n").parameters == {}
    assert described("Add.\n\nNotes\n-----\nnone\n").parameters == {}
