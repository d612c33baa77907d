"""Gymnasium wrappers for remote environments; each has a twin of the same name for vector environments."""

__all__: list[str] = []
