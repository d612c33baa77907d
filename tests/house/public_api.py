"""The public API as text: every public name of the four packages with its signature, read from the sources.

Read and not imported, so that the text is the same on every Python and with every release of a dependency. Run it as
``python -m tests.house.public_api`` to print the text, with ``--write`` to store it.

A name is public when its module's ``__all__`` (or, without one, its first letter) says so and no part of the module's
own name begins with an underscore. Tests, benchmarks and examples have no public names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.repository import declared_names, module_name, package_files, parse

SNAPSHOT = Path(__file__).parent / "snapshots" / "public_api.txt"


def render() -> str:
    """The whole API, one paragraph a module."""
    return "\n".join(paragraph for path in package_files() if (paragraph := render_module(path)))


def render_module(path: Path) -> str:
    name = module_name(path)
    if any(part.startswith("_") for part in name.split(".")):
        return ""
    tree = parse(path)
    declared = declared_names(tree)
    lines = list(module_lines(tree.body, set(declared) if declared is not None else None))
    return "".join(f"{line}\n" for line in (name, *(f"    {line}" for line in lines))) if lines else ""


def module_lines(body: list[ast.stmt], declared: set[str] | None) -> Iterator[str]:
    for node in body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from module_lines(node.body, declared)
            case ast.ImportFrom(module=str(module)) if declared is not None:
                names = [alias.asname or alias.name for alias in node.names]
                yield from (f"{name} from {module}" for name in names if name in declared)
            case ast.ClassDef(name=name) if is_public(name, declared):
                yield from class_lines(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if is_public(name, declared):
                yield function_line(node)
            case ast.Assign() | ast.AnnAssign():
                yield from (line for name, line in assigned(node) if is_public(name, declared))


def class_lines(node: ast.ClassDef) -> Iterator[str]:
    keywords = (f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords)
    bases = ", ".join((*map(ast.unparse, node.bases), *keywords))
    yield f"class {node.name}({bases})" if bases else f"class {node.name}"
    for decorator in node.decorator_list:
        yield f"    @{ast.unparse(decorator)}"
    for member in node.body:
        match member:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if is_for_callers(name):
                yield from (f"    @{ast.unparse(decorator)}" for decorator in member.decorator_list)
                yield f"    {function_line(member)}"
            case ast.Assign() | ast.AnnAssign():
                yield from (f"    {line}" for name, line in assigned(member) if not name.startswith("_"))


def function_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{kind} {node.name}({ast.unparse(node.args)}){result}"


def assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, str]]:
    """Each name that the statement gives a value or a type, with the line that shows it."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        value = f" = {ast.unparse(node.value)}" if node.value is not None else ""
        yield node.target.id, f"{node.target.id}: {ast.unparse(node.annotation)}{value}"
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, f"{target.id} = {ast.unparse(node.value)}"


def is_public(name: str, declared: set[str] | None) -> bool:
    return name in declared if declared is not None else not name.startswith("_")


def is_for_callers(method: str) -> bool:
    return not method.startswith("_") or (method.startswith("__") and method.endswith("__"))


def main(arguments: list[str]) -> None:
    """Print the text, or store it."""
    if arguments == ["--write"]:
        SNAPSHOT.write_text(render(), encoding="utf-8")
    elif not arguments:
        sys.stdout.write(render())
    else:
        sys.exit("usage: python -m tests.house.public_api [--write]")


if __name__ == "__main__":
    main(sys.argv[1:])
