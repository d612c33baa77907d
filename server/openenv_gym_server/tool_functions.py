"""One tool: a typed Python function with a name, a JSON Schema and checked arguments.

Not for which tools an environment has (``tool_sets.py``), nor for calling one within its time and what becomes of its
result (``tool_caller.py``, ``tool_results.py``).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, starmap
from typing import Any, NamedTuple, TypeVar, get_type_hints, overload
from weakref import WeakKeyDictionary

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError

from openenv_gym.json_text import JSONObject, encode_json
from openenv_gym.tools import RESERVED_TOOL_NAMES, DescribedTool
from openenv_gym.types import ServerMode
from openenv_gym_server.docstrings import described
from openenv_gym_server.errors import text_of
from openenv_gym_server.exact_floats import changed_integers, may_change
from openenv_gym_server.output_schemas import ToolSchema, output_schema

__all__ = ["ArgumentsError", "ToolFunction", "ToolOptions", "check_tool_name", "options_of", "tool"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

MAX_NAME = 128
MAX_FAULTS = 20
"""Faults of one call's arguments that are told."""

_MARK = "__openenv_tool__"
_NAME = re.compile(r"[^\s\x00-\x1f]+")


class ArgumentsError(Exception):
    """The arguments of a call are not as the tool's signature wants them; the message tells each fault."""


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What ``tool`` says of a function.

    Attributes:
        mode: the server's mode in which the tool exists; None is both.
        name: what agents call it; None is the function's own name.
        timeout_s: how long a call may take, in seconds; None leaves it to the environment.

    Raises:
        ValueError: there is no such mode, or the name cannot be a tool's, or the time is not above 0.
    """

    mode: str | None = None
    name: str | None = None
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in list(ServerMode):
            raise ValueError(f"expected 'simulation', 'production' or None as a tool's mode, got {self.mode!r}")
        if self.name is not None:
            check_tool_name(self.name)
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"expected a tool's timeout_s to be above 0, got {self.timeout_s!r}; None leaves it out")


@overload
def tool(function: FunctionT) -> FunctionT: ...
@overload
def tool(
    *, mode: str | None = None, name: str | None = None, timeout_s: float | None = None
) -> Callable[[FunctionT], FunctionT]: ...


def tool(
    function: Any = None, *, mode: str | None = None, name: str | None = None, timeout_s: float | None = None
) -> Any:
    """Make a method of an ``MCPEnvironment`` a tool; it remains the method it is.

    Its parameters' types and defaults are the tool's schema, its docstring the description (of the parameters too). A
    subclass that overrides the method overrides the tool. It may be ``async def``.

    Args:
        function: the method, where the decorator has no arguments.
        mode: ``"simulation"`` or ``"production"``, where the tool exists in that mode of the server alone; two methods
            may have one name in the two modes.
        name: what agents call it; else the method's name.
        timeout_s: how long a call may take, in seconds; else the environment's ``TOOL_TIMEOUT_S``.

    Raises:
        ValueError: there is no such mode, or the name cannot be a tool's, or the time is not above 0.
        TypeError: it is nothing that can be called.

    Example:
        >>> class Doors:
        ...     @tool
        ...     def look(self, direction: str = "north") -> str:
        ...         "Look around."
        ...         return f"a door to the {direction}"
        >>> Doors().look()
        'a door to the north'
    """
    options = ToolOptions(mode, name, timeout_s)

    def mark(function: Any) -> Any:
        # Of a class or static method it is the function within that can carry a mark.
        inner = getattr(function, "__func__", function)
        if not callable(inner):
            raise TypeError(
                f"expected a method to be made a tool, got {function!r:.100}; options go by name, as in "
                '@tool(mode="production")'
            )
        setattr(inner, _MARK, options)
        return function

    return mark if function is None else mark(function)


def options_of(function: object) -> ToolOptions | None:
    """What ``tool`` said of a function or method; None where it is no tool."""
    found = getattr(getattr(function, "__func__", function), _MARK, None)
    return found if isinstance(found, ToolOptions) else None


def check_tool_name(name: object) -> None:
    """Hold a name to what a tool may be called.

    Raises:
        ValueError: it is reserved, or no text without spaces of at most 128 characters.
    """
    if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise ValueError(f"expected a tool's name of 1 to {MAX_NAME} characters without spaces, got {name!r:.200}")
    if name in RESERVED_TOOL_NAMES:
        raise ValueError(
            f"a tool cannot be called {name!r}: the names {sorted(RESERVED_TOOL_NAMES)} are what a trainer does with "
            "an environment; give it another with name=…"
        )


class ToolFunction:
    """A function as a tool.

    Args:
        function: the function, or bound method, or anything callable with a signature.
        options: what ``tool`` said of it.
        docstring: what describes it where it has no docstring of its own.

    Attributes:
        name: what agents call it.
        mode: the mode in which it exists; None is both.
        timeout_s: limit of a call, where the tool has one of its own.
        function: what is called.

    Raises:
        ValueError: the name cannot be a tool's.
        TypeError: the signature cannot be a tool's; the message says why.

    Example:
        >>> def add(a: int, b: int = 1) -> int:
        ...     return a + b
        >>> tool = ToolFunction(add)
        >>> tool.description.input_schema["required"]
        ['a']
        >>> tool.function(**tool.read({"a": 2}))
        3
    """

    def __init__(
        self, function: Callable[..., Any], options: ToolOptions | None = None, docstring: str | None = None
    ) -> None:
        options = options or ToolOptions()
        self.function = function
        self.name = options.name or str(getattr(function, "__name__", type(function).__name__))
        self.mode = options.mode
        self.timeout_s = options.timeout_s
        self._face = _face(function, self.name, inspect.getdoc(function) or docstring)

    @property
    def description(self) -> DescribedTool:
        """The tool for an agent; a copy, since all instances of a class share theirs and an author may change it."""
        return self._face.description.model_copy(deep=True)

    @property
    def is_async(self) -> bool:
        """Whether a call has to be awaited, as far as the function itself says."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object's own __call__ may be async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def read(self, arguments: JSONObject) -> dict[str, Any]:
        """The arguments of a call, as the function wants them.

        Raises:
            ArgumentsError: one is missing, unknown, or of another type than the signature's; or is an integer that no
                float is, where the signature wants a float.
        """
        try:
            # As JSON, because strictness there is JSON's: a list is a tuple's form, a string a date's.
            text = encode_json(arguments)
            read = self._face.validate(text)
            changed = list(islice(changed_integers(arguments, read), MAX_FAULTS)) if may_change(text) else []
        except ValidationError as error:
            raise ArgumentsError(_complaint(self.name, error)) from error
        except BaseException as error:
            raise ArgumentsError(f"the arguments of {self.name!r} cannot be read: {text_of(error)}") from error
        if changed:
            raise ArgumentsError(f"invalid arguments for {self.name!r}: {'; '.join(starmap(_no_float, changed))}")
        return read


class _Face(NamedTuple):
    """What agents see of a function: its description, and what reads the JSON of its arguments."""

    description: DescribedTool
    validate: Callable[[bytes], dict[str, Any]]


_faces: WeakKeyDictionary[Any, dict[tuple[str, str | None], _Face]] = WeakKeyDictionary()
"""The faces of methods, which are the same for every instance of a class."""


def _face(function: Callable[..., Any], name: str, docstring: str | None) -> _Face:
    if not inspect.ismethod(function):
        return _made_face(function, name, docstring)
    known = _faces.setdefault(function.__func__, {})
    face = known.get((name, docstring))
    if face is None:
        face = known[name, docstring] = _made_face(function, name, docstring)
    return face


def _made_face(function: Callable[..., Any], name: str, docstring: str | None) -> _Face:
    check_tool_name(name)
    text = described(docstring)
    arguments = _adapter(name, function)
    schema = _schema(name, arguments)
    for parameter, description in text.parameters.items():
        if parameter in schema["properties"]:
            schema["properties"][parameter].setdefault("description", description)
    told = DescribedTool(
        name=name, description=text.summary, input_schema=schema, output_schema=output_schema(_written(function))
    )
    # The adapter's own method checks options first, which costs as much as small arguments themselves.
    return _Face(told, arguments.validator.validate_json)


def _complaint(name: str, error: ValidationError) -> str:
    faults = [
        f"{'.'.join(str(part)[:MAX_NAME] for part in entry['loc'])}: {entry['msg'].replace('keyword only ', '')}"
        for entry in error.errors(include_url=False, include_context=False)[:MAX_FAULTS]
    ]
    return f"invalid arguments for {name!r}: {'; '.join(faults)}"


def _no_float(path: tuple[str, ...], number: int) -> str:
    place = ".".join(part[:MAX_NAME] for part in path)
    text = str(number) if abs(number) < 10**40 else f"an integer of {number.bit_length()} bits"
    return f"{place}: Input should be a number that a float can be, and {text} is none"


def _adapter(name: str, function: Callable[..., Any]) -> TypeAdapter[Any]:
    """What makes keyword arguments of a JSON object, by the function's signature."""
    inner = _written(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(f"the tool {name!r} yields values; a tool returns one value")
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(inner, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise TypeError(
            f"the signature of the tool {name!r} cannot be read: {error}; annotate it with types that exist where the "
            "function is defined"
        ) from error
    parameters = [_parameter(name, each, hints) for each in signature.parameters.values()]

    def keywords(**arguments: Any) -> dict[str, Any]:
        return arguments

    keywords.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    keywords.__annotations__ = {each.name: each.annotation for each in parameters}
    keywords.__name__ = keywords.__qualname__ = name
    try:
        return TypeAdapter[Any](keywords, config=ConfigDict(strict=True, val_json_bytes="base64"))  # type: ignore[arg-type]
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise TypeError(f"the tool {name!r} has a parameter whose type cannot come from JSON: {error}") from error


def _written(function: Any) -> Any:
    """The function that an author wrote, whose annotations are a callable object's, a class's or a partial's."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isclass(function):
        return function.__init__
    return function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004


def _parameter(tool_name: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> inspect.Parameter:
    """The parameter as one that is only given by name, which is how an agent gives it."""
    if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        kind = "positional-only" if parameter.kind is inspect.Parameter.POSITIONAL_ONLY else str(parameter)
        raise TypeError(
            f"the parameter {parameter.name!r} of the tool {tool_name!r} is {kind}; agents give arguments by name, so "
            "a tool's parameters have names of their own"
        )
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=parameter.default,
        annotation=hints.get(parameter.name, Any),
    )


def _schema(name: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    try:
        return adapter.json_schema(schema_generator=ToolSchema)
    except PydanticInvalidForJsonSchema as error:
        raise TypeError(f"the tool {name!r} has a parameter whose type has no JSON Schema: {error}") from error
