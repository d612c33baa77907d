"""The routes, one module a subject. A route decodes, calls ``dispatch`` and encodes; it decides nothing else."""
