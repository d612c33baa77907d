"""Gymnasium wrappers for remote environments."""

__all__: list[str] = []
