"""The size of files and functions stays where one reading takes them in. Complexity is ruff's to check (C901)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.repository import PACKAGES, PROGRAMS, all_python_files, files_under, module_name, parse, relative

FILE_LINES = 400
FUNCTION_LINES = 60
NESTING = 4
PARAMETERS = 6

DICTATED_SIGNATURES = {
    "openenv_gym.client:EnvClient.__init__": "openenv 0.10.0: clients written for it are made so",
    "openenv_gym.cli.serve:serve": "typer reads the options of a command from its parameters",
    "openenv_gym.env:RemoteEnv.__init__": "gymnasium.make hands over every keyword of its caller",
    "openenv_gym.vector:RemoteVectorEnv.__init__": "gymnasium.make_vec hands over every keyword of its caller",
    "openenv_gym_server.app:create_app": "openenv 0.10.0: environments written for it call it so",
    "openenv_gym_server.app:create_fastapi_app": "openenv 0.10.0: environments written for it call it so",
    "openenv_gym_server.app:HTTPEnvServer.__init__": "openenv 0.10.0: environments written for it call it so",
}
"""Functions that may have more parameters, each with the reason."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in all_python_files()}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines_without_its_docstring() -> None:
    lengths = {name: lines_of(node) for name, node in functions()}
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}


def test_no_function_nests_deeper_than_4_blocks() -> None:
    depths = {name: depth_of(node.body) for name, node in functions()}
    assert {name: depth for name, depth in depths.items() if depth > NESTING} == {}


def test_no_function_has_more_than_6_parameters_unless_its_signature_is_dictated() -> None:
    counts = {name: parameters_of(node) for name, node in functions()}
    long = {name: count for name, count in counts.items() if count > PARAMETERS}
    assert {name: count for name, count in long.items() if name not in DICTATED_SIGNATURES} == {}


def test_every_listed_exemption_is_still_needed() -> None:
    long = {name for name, node in functions() if parameters_of(node) > PARAMETERS}
    assert sorted(DICTATED_SIGNATURES.keys() - long) == []


def test_an_elif_counts_as_the_same_depth_and_a_block_inside_an_else_as_one_more() -> None:
    chain = ast.parse("if a: pass\nelif b: pass\nelif c: pass\nelse:\n    for d in e: pass\n    f = 1")
    assert depth_of(chain.body) == 2


def test_the_parameters_counted_are_those_a_caller_can_name() -> None:
    (node,) = ast.parse("class A:\n    def f(self, a, /, b, *c, d, **e): pass").body
    assert isinstance(node, ast.ClassDef)
    assert [parameters_of(function) for _, function in walk(node, "A")] == [3]


def functions() -> Iterator[tuple[str, Function]]:
    """Every function of the packages and the programs, nested ones too, as ``module:Class.method``."""
    for path in measured_files():
        for name, node in walk(parse(path), ""):
            yield f"{module_name(path)}:{name}", node


def measured_files() -> list[Path]:
    return list(files_under((*PACKAGES.values(), *PROGRAMS), "*.py"))


def walk(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(parent):
        named = isinstance(node, Function | ast.ClassDef)
        name = f"{prefix}.{node.name}".lstrip(".") if isinstance(node, Function | ast.ClassDef) else prefix
        if isinstance(node, Function):
            yield name, node
        yield from walk(node, name if named else prefix)


def lines_of(node: Function) -> int:
    """Lines from ``def`` to the end, less the docstring's."""
    assert node.end_lineno is not None
    length = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        assert first.end_lineno is not None
        length -= first.end_lineno - first.lineno + 1
    return length


def depth_of(statements: list[ast.stmt]) -> int:
    """How many blocks deep the statements go; a function inside counts for itself alone."""
    return max((depth_of_one(statement) for statement in statements), default=0)


def depth_of_one(statement: ast.stmt) -> int:
    if isinstance(statement, ast.ClassDef):
        return depth_of(statement.body)
    if not isinstance(statement, BLOCKS):
        return 0
    if isinstance(statement, ast.If) and len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        return max(1 + depth_of(statement.body), depth_of_one(statement.orelse[0]))
    return 1 + max(depth_of(body) for body in bodies_of(statement))


def bodies_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        yield part.body


def parameters_of(node: Function) -> int:
    """Parameters a caller can fill one by one: neither ``self`` and ``cls`` nor ``*args`` and ``**kwargs``."""
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(argument.arg not in {"self", "cls"} for argument in named)
