"""The machine a result was measured on, and the versions of what took part."""

from __future__ import annotations

import os
import platform
from importlib import metadata


def describe_machine() -> dict[str, str]:
    """Processor, cores, Python and the packages that matter."""
    packages = ("openenv-gym", "openenv", "gymnasium", "uvicorn", "uvloop", "websockets", "starlette", "msgspec")
    versions = {name: _version(name) for name in packages}
    summary = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    return {"summary": summary, "processor": _processor(), **versions}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"
