"""PPO of Stable-Baselines3 on CartPole behind a server: until it balances for 500 steps, in less than a minute.

Run with ``python examples/ppo_sb3_cartpole.py``; it needs the extra ``sb3`` (``pip install "openenv-gym[sb3]"``). The
environments run in a server process on this machine, or on the server that ``--base-url`` names; what Stable-Baselines3
gets is one ``VecEnv``. Curve and score are written as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

from openenv_gym.sb3 import make_vec_env

WINDOW, MARGIN = 20, 15.0
"""The learning ends once the mean return of the last so many episodes is so far above what Gymnasium calls solved."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What can be said on the command line."""

    env_id: str = "CartPole-v1"
    base_url: str | None = None
    seed: int = 0
    num_envs: int = 8
    timesteps: int = 100_000
    episodes: int = 20
    output: Path = Path("runs/ppo_sb3_cartpole.json")


class Watch(BaseCallback):
    """Shows how far the learning is, keeps the curve, and ends the learning once the last episodes are good enough."""

    def __init__(self, progress: Progress, timesteps: int, threshold: float | None) -> None:
        super().__init__()
        self.wanted = math.inf if threshold is None else threshold + MARGIN
        self.progress = progress
        self.task = progress.add_task("learning", total=timesteps)
        self.curve: list[tuple[int, float]] = []
        self.enough = False

    def _on_step(self) -> bool:
        return not self.enough

    def _on_rollout_end(self) -> None:
        episodes: Iterable[dict[str, Any]] = self.model.ep_info_buffer or ()
        returns = [float(episode["r"]) for episode in episodes]
        if returns:
            mean = sum(returns) / len(returns)
            self.curve.append((self.num_timesteps, mean))
            self.enough = len(returns) == WINDOW and mean >= self.wanted
            self.progress.update(self.task, description=f"learning, mean return {mean:5.1f}")
        self.progress.update(self.task, completed=self.num_timesteps)


def linearly_from(start: float) -> Any:
    """A schedule that falls to nothing at the end; Stable-Baselines3 tells it what is left."""
    return lambda left: start * left


def train(options: Options, console: Console) -> dict[str, Any]:
    """Learn, then play; what came of it."""
    # The network is so small that more threads only wait for each other.
    torch.set_num_threads(1)
    where: dict[str, Any] = {"base_url": options.base_url, "env_id": options.env_id}
    envs = make_vec_env("openenv/gym-v0", options.num_envs, options.seed, **where)
    spec = envs.get_attr("spec")[0]
    threshold = spec.reward_threshold if spec else None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    try:
        model = PPO(
            "MlpPolicy",
            envs,
            n_steps=32,
            batch_size=256,
            n_epochs=20,
            gamma=0.98,
            gae_lambda=0.8,
            learning_rate=linearly_from(0.001),
            clip_range=linearly_from(0.2),
            stats_window_size=WINDOW,
            seed=options.seed,
            device="cpu",
        )
        with Progress(*columns, console=console) as progress:
            watch = Watch(progress, options.timesteps, threshold)
            started = time.perf_counter()
            model.learn(options.timesteps, callback=watch)
            seconds = time.perf_counter() - started
        rewards, _ = evaluate_policy(model, envs, options.episodes, return_episode_rewards=True, warn=False)
    finally:
        envs.close()
    return {
        "options": {name: value for name, value in dataclasses.asdict(options).items() if name != "output"},
        "timesteps": model.num_timesteps,
        "seconds": seconds,
        "steps_per_second": model.num_timesteps / seconds,
        "threshold": threshold,
        "mean_reward": float(np.mean(rewards)),
        "rewards": [float(reward) for reward in np.ravel(rewards)],
        "curve": watch.curve,
    }


def read_options() -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    add = parser.add_argument
    add("--env-id", default=defaults.env_id, help="what the server serves (default: %(default)s)")
    add("--base-url", help="a server's address (default: a server on this machine, for as long as this runs)")
    add("--seed", type=int, default=defaults.seed, help="of everything that is random (default: %(default)s)")
    add("--num-envs", type=int, default=defaults.num_envs, help="environments at once (default: %(default)s)")
    add("--timesteps", type=int, default=defaults.timesteps, help="at most so many steps (default: %(default)s)")
    add("--episodes", type=int, default=defaults.episodes, help="episodes to play at the end (default: %(default)s)")
    add("--output", type=Path, default=defaults.output, help="the file for the results (default: %(default)s)")
    return Options(**vars(parser.parse_args()))


def verdict(mean: float, threshold: float | None) -> str:
    """Whether that is solved, where Gymnasium says from which mean on the environment is."""
    if threshold is None:
        return ""
    return f" ({'solved' if mean >= threshold else 'not solved'}: {threshold:g})"


def main() -> int:
    """Train, write the file, and say whether it is solved."""
    options = read_options()
    console = Console(width=None if sys.stdout.isatty() else 100)
    outcome = train(options, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
    mean = outcome["mean_reward"]
    console.print(
        f"{options.env_id}: mean reward {mean:.1f} over {options.episodes} episodes"
        f"{verdict(mean, outcome['threshold'])}, {outcome['timesteps']:,} steps in "
        f"{outcome['seconds']:.1f} s. Written: {options.output}",
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
