"""Clients and servers in memory, as far as ``Places`` knows them, for its tests."""

from __future__ import annotations

import asyncio

from openenv_gym.errors import CapacityError, EnvironmentExecutionError, UnreachableError
from openenv_gym.pool_places import Places

WAIT_S = 20.0


class Server:
    """A server's sessions, counted; ``late`` ones refuse a session only once it is used."""

    def __init__(self, url="http://one", capacity=100, *, late=False, down=False):
        self.base_url = url
        self.capacity = capacity
        self.late = late
        self.down = down
        self.open = 0
        self.asked = 0
        self.most = 0
        self.closed = 0

    def refuse(self):
        raise CapacityError("full", code="CAPACITY_REACHED", active_sessions=self.open, max_sessions=self.capacity)


class Client:
    """What ``Places`` knows of an ``EnvClient``."""

    def __init__(self, server):
        self.server = server
        self.has_session = False
        self.children = []

    @property
    def base_url(self):
        return self.server.base_url

    async def new_session(self):
        child = Client(self.server)
        await child.connect()
        self.children.append(child)
        return child

    def forget_episode(self):
        pass

    async def connect(self):
        if self.has_session:
            return
        self.server.asked += 1
        await asyncio.sleep(0)
        if self.server.down:
            raise UnreachableError("nobody there")
        if self.server.open >= self.server.capacity:
            self.refused = True
            if self.server.late:
                return
            self.server.refuse()
        self.refused = False
        self.has_session = True
        self.server.open += 1
        self.server.most = max(self.server.most, self.server.open)

    async def state(self):
        await asyncio.sleep(0)
        if self.refused:
            self.server.refuse()
        raise EnvironmentExecutionError("no episode yet")

    async def disconnect(self):
        await asyncio.sleep(0)
        if self.has_session:
            self.has_session = False
            self.server.open -= 1

    async def close(self):
        for client in (self, *self.children):
            await client.disconnect()
        self.server.closed += 1


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, WAIT_S))


async def settle():
    for _ in range(30):
        await asyncio.sleep(0)


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.001)


def places_on(*servers, limit=4, timeout_s=1.0):
    return Places([Client(server) for server in servers], limit, timeout_s)
