"""Tests of ``openenv_gym_server.reading``."""

from __future__ import annotations

import asyncio
import threading

import pytest

from openenv_gym_server.reading import LARGE, off_the_loop


@pytest.mark.parametrize(("size", "here"), [(LARGE, True), (LARGE + 1, False)])
def test_only_large_messages_are_read_off_the_loop(size: int, here: bool) -> None:
    async def main() -> bool:
        return await off_the_loop(size, threading.get_ident) == threading.get_ident()

    assert asyncio.run(main()) is here
