"""What an environment may provide or be given, by shape alone: nothing here has to be inherited from.

Not for the environment itself (``environment.py``) nor for its codec (``codec.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypedDict, runtime_checkable

__all__ = ["Message", "ModelTokenizer", "TaskProvider"]


@runtime_checkable
class TaskProvider(Protocol):
    """An environment that can say what tasks it has; the server answers questions about them over HTTP.

    A method may be ``async def``, and one that is not there is answered with 501. Each question is put to an
    environment made for it and never reset, on that environment's thread, so a method must not depend on an episode. A
    task is chosen by ``reset(split=…, index=…)``.

    Example:
        >>> class Quiz:
        ...     def list_splits(self):
        ...         return ["train", "test"]
        ...     def list_tasks(self, split):
        ...         return [{"question": "1 + 1"}, {"question": "2 + 2"}]
        ...     def num_tasks(self, split):
        ...         return 2
        ...     def get_task(self, split, index):
        ...         return self.list_tasks(split)[index]
        ...     def get_task_range(self, split, start=None, stop=None):
        ...         return self.list_tasks(split)[start:stop]
        >>> isinstance(Quiz(), TaskProvider)
        True
    """

    def list_splits(self) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        """The splits: names, or models and dicts with ``name`` and ``type``."""

    def list_tasks(self, split: str) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        """The tasks of a split, or its first ones where they are too many."""

    def num_tasks(self, split: str) -> int | Awaitable[int]:
        """How many tasks a split has."""

    def get_task(self, split: str, index: int) -> Any:
        """One task.

        Raises:
            IndexError: there is none at that index; the client is answered with 400.
        """

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        """The tasks between two bounds, which are those of a Python slice."""


class Message(TypedDict):
    """One message of a conversation, as chat templates take it.

    Example:
        >>> message: Message = {"role": "user", "content": "hello"}
    """

    role: str
    content: str


class ModelTokenizer(Protocol):
    """As much of a language model's tokenizer as an environment of conversations needs; transformers' have it."""

    def apply_chat_template(
        self,
        conversation: list[Message],
        tokenize: bool = True,
        return_tensors: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The conversation in the model's own format: token ids, or text where ``tokenize`` is false."""

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any) -> str:
        """The text of token ids."""
