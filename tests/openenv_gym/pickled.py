"""What a spawned process of a test runs; it imports little, since a spawned process begins with its imports."""

import pickle
from typing import Any


def run_pickled(pickled: bytes) -> Any:
    """The result of a pickled function without arguments."""
    return pickle.loads(pickled)()
