"""``python -m openenv_gym.cli``: the command line without the installed script."""

from openenv_gym.cli import main

main()
