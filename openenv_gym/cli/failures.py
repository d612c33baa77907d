"""What somebody else's module raised, told short: the message, and the module's own line. Not for our own errors."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception_only

__all__ = ["told_short"]


def told_short(error: Exception) -> str:
    """The message of an error, and the line of the user's own code that it came from.

    Example:
        >>> told_short(ValueError("no such door"))
        'ValueError: no such door'
    """
    text = "".join(format_exception_only(error)).strip()
    frame = _own_frame(error)
    if frame is None or isinstance(error, SyntaxError):  # whose text has the place already
        return text
    line = f"\n    {frame.line}" if frame.line else ""
    return f'{text}\n  File "{frame.filename}", line {frame.lineno}, in {frame.name}{line}'


def _own_frame(error: Exception) -> FrameSummary | None:
    """The last frame of the user's own code; of an installed package's, where there is none."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not _is_under(frame.filename, _OURS)]
    foreign = [frame for frame in frames if not frame.filename.startswith("<") and frame.name != "import_module"]
    own = [frame for frame in foreign if not _is_under(frame.filename, _INSTALLED)]
    return next(reversed(own or foreign), None)


def _is_under(filename: str, folders: list[str]) -> bool:
    return any(filename.startswith(folder) for folder in folders)


def _folder_of(package: str) -> str | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else f"{Path(spec.origin).parent}/"


_OURS = [folder for name in ("openenv_gym", "openenv_gym_server") if (folder := _folder_of(name)) is not None]
_INSTALLED = [f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")]
