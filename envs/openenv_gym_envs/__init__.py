"""Environments that are ready to serve: one package each, with its ``openenv.yaml`` and its app."""

__all__: list[str] = []
