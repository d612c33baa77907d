"""Speed, measured: this project, its peers and the limit side by side in one run. ``python -m benchmarks --help``."""
