"""Vectorised PPO in plain torch, on environments that are spread over several servers.

Run with ``python examples/ppo_sharded.py``; it needs torch, which the extra ``sb3`` brings
(``pip install "openenv-gym[sb3]"``). It starts two servers on this machine; ``--base-url``, once for each server, names
running ones instead. All environments together are one ``gymnasium.vector.VectorEnv``: each step sends its actions to
all servers before it waits for the first answer. Curve and score are written as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor, nn

from openenv_gym import ProcessProvider

WINDOW, MARGIN = 20, 15.0
"""Once the mean return of the last so many episodes is so far above what Gymnasium calls solved, the policy is tried
out without chance."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What can be said on the command line, and what is as good as any."""

    env_id: str = "CartPole-v1"
    base_url: list[str] | None = None
    servers: int = 2
    seed: int = 0
    num_envs: int = 8
    timesteps: int = 100_000
    episodes: int = 20
    output: Path = Path("runs/ppo_sharded.json")
    num_steps: int = 32
    minibatch_size: int = 256
    epochs: int = 20
    learning_rate: float = 0.001
    clip: float = 0.2
    gamma: float = 0.98
    gae_lambda: float = 0.8
    value_weight: float = 0.5
    max_gradient: float = 0.5


class Agent(nn.Module):
    """A policy and a value of the observation, two small networks."""

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape or (1,)))
        space = envs.single_action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise SystemExit(f"expected an environment with Discrete actions, got {space}")
        self.policy = network(inputs, int(space.n), last_gain=0.01)
        self.value = network(inputs, 1, last_gain=1.0)

    def log_probabilities(self, observations: Tensor) -> Tensor:
        """Of every action, shape (…, actions)."""
        return nn.functional.log_softmax(self.policy(observations), dim=-1)

    def values(self, observations: Tensor) -> Tensor:
        """What is still to be expected."""
        values: Tensor = self.value(observations).squeeze(-1)
        return values


def network(inputs: int, outputs: int, *, last_gain: float) -> nn.Sequential:
    """Two hidden layers, with orthogonal weights."""
    layers = [nn.Linear(inputs, 64), nn.Linear(64, 64), nn.Linear(64, outputs)]
    for layer, gain in zip(layers, (2**0.5, 2**0.5, last_gain), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def tensor(observations: np.ndarray) -> Tensor:
    """Observations as the networks take them: float32, one row an environment."""
    return torch.as_tensor(observations.reshape(len(observations), -1), dtype=torch.float32)


class Batch:
    """One rollout: ``num_steps`` steps of all environments; every array has the shape (num_steps, num_envs, …)."""

    def __init__(self, options: Options, inputs: int) -> None:
        shape = (options.num_steps, options.num_envs)
        self.observations = torch.zeros((*shape, inputs))
        self.actions = torch.zeros(shape, dtype=torch.int64)
        self.log_probabilities = torch.zeros(shape)
        self.values = torch.zeros(shape)
        self.rewards = torch.zeros(shape)
        self.ends = torch.zeros(shape)

    def advantages(self, last_values: Tensor, options: Options) -> Tensor:
        """Generalised advantage estimation, backwards from the value of what came after."""
        advantages = torch.zeros_like(self.rewards)
        following, running = last_values, torch.zeros_like(last_values)
        for step in reversed(range(len(self.rewards))):
            goes_on = 1 - self.ends[step]
            error = self.rewards[step] + options.gamma * following * goes_on - self.values[step]
            running = error + options.gamma * options.gae_lambda * goes_on * running
            advantages[step], following = running, self.values[step]
        return advantages


class Learner:
    """PPO: roll out, improve, again.

    Args:
        envs: in the mode SAME_STEP, so that no step is spent on a reset.
        options: everything else.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], options: Options) -> None:
        self.envs = envs
        self.options = options
        self.agent = Agent(envs)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=options.learning_rate, eps=1e-5)
        self.returns: deque[float] = deque(maxlen=WINDOW)
        self.begin(options.seed)

    def begin(self, seed: int | None = None) -> None:
        """Begin new episodes everywhere, and forget the returns of old ones."""
        self.observations = tensor(self.envs.reset(seed=seed)[0])
        self.returns.clear()
        self._running = np.zeros(self.options.num_envs)

    @torch.no_grad()
    def roll_out(self) -> Batch:
        """Play with the policy as it is."""
        batch = Batch(self.options, self.observations.shape[1])
        for step in range(self.options.num_steps):
            log_probabilities = self.agent.log_probabilities(self.observations)
            actions = torch.multinomial(log_probabilities.exp(), 1)
            batch.observations[step] = self.observations
            batch.actions[step] = actions.squeeze(1)
            batch.log_probabilities[step] = log_probabilities.gather(1, actions).squeeze(1)
            batch.values[step] = self.agent.values(self.observations)
            observations, rewards, terminations, truncations, infos = self.envs.step(actions.squeeze(1).numpy())
            ends = terminations | truncations
            self._count(rewards, ends)
            cut = np.flatnonzero(truncations & ~terminations)
            if cut.size:
                # A time limit is no fault of the policy: what would have come after still counts.
                final = tensor(np.stack(list(infos["final_obs"][cut])))
                rewards[cut] += self.options.gamma * self.agent.values(final).numpy()
            batch.rewards[step] = torch.as_tensor(rewards)
            batch.ends[step] = torch.as_tensor(ends)
            self.observations = tensor(observations)
        return batch

    def _count(self, rewards: np.ndarray, ends: np.ndarray) -> None:
        self._running += rewards
        self.returns.extend(self._running[ends].tolist())
        self._running[ends] = 0

    def improve(self, batch: Batch, left: float) -> None:
        """Make what went better than expected more likely.

        Args:
            batch: what the policy has just played.
            left: how much of the learning is left, from 1 to 0; learning rate and clipping shrink with it.
        """
        options = self.options
        with torch.no_grad():
            advantages = batch.advantages(self.agent.values(self.observations), options).flatten()
        targets = advantages + batch.values.flatten()
        observations, actions = batch.observations.flatten(0, 1), batch.actions.flatten()
        before = batch.log_probabilities.flatten()
        self.optimizer.param_groups[0]["lr"] = options.learning_rate * left
        clip = options.clip * left
        for _ in range(options.epochs):
            order = torch.randperm(len(actions))
            for start in range(0, len(actions), options.minibatch_size):
                rows = order[start : start + options.minibatch_size]
                after = self.agent.log_probabilities(observations[rows]).gather(1, actions[rows, None]).squeeze(1)
                ratio = (after - before[rows]).exp()
                gain = advantages[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.minimum(gain * ratio, gain * ratio.clamp(1 - clip, 1 + clip)).mean()
                value_loss = (self.agent.values(observations[rows]) - targets[rows]).square().mean()
                self.optimizer.zero_grad()
                torch.autograd.backward(policy_loss + options.value_weight * value_loss)
                nn.utils.clip_grad_norm_(self.agent.parameters(), options.max_gradient)
                self.optimizer.step()


@torch.no_grad()
def play(agent: Agent, envs: VectorEnv[Any, Any, Any], options: Options) -> list[float]:
    """The returns of whole episodes with the likeliest actions, evenly many from every environment."""
    observations, _ = envs.reset(seed=options.seed + 1_000)
    quota = np.full(options.num_envs, -(-options.episodes // options.num_envs))
    running, returns = np.zeros(options.num_envs), []
    while quota.any():
        actions = agent.policy(tensor(observations)).argmax(-1).numpy()
        observations, rewards, terminations, truncations, _ = envs.step(actions)
        running += rewards
        for index in np.flatnonzero((terminations | truncations) & (quota > 0)):
            returns.append(float(running[index]))
            quota[index] -= 1
        running[terminations | truncations] = 0
    return returns


def train(options: Options, base_urls: list[str], console: Console) -> dict[str, Any]:
    """Learn, then play; what came of it."""
    # The networks are so small that more threads only wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    envs = gymnasium.make_vec(
        "openenv/gym-v0",
        options.num_envs,
        base_url=base_urls,
        env_id=options.env_id,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    threshold = envs.spec.reward_threshold if envs.spec else None
    solved = math.inf if threshold is None else threshold
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    steps, curve, returns, started = 0, [], [0.0], time.perf_counter()
    with contextlib.closing(envs), Progress(*columns, console=console) as progress:
        task = progress.add_task("learning", total=options.timesteps)
        learner = Learner(envs, options)
        while steps < options.timesteps:
            left = 1 - steps / options.timesteps
            learner.improve(learner.roll_out(), left)
            steps += options.num_steps * options.num_envs
            mean = float(np.mean(learner.returns)) if learner.returns else 0.0
            curve.append((steps, mean))
            progress.update(task, completed=steps, description=f"learning, mean return {mean:5.1f}")
            if (len(learner.returns) == WINDOW and mean >= solved + MARGIN) or steps >= options.timesteps:
                returns = play(learner.agent, envs, options)
                if np.mean(returns) >= solved:
                    break
                learner.begin()
        seconds = time.perf_counter() - started
    return {
        "options": {name: value for name, value in dataclasses.asdict(options).items() if name != "output"},
        "timesteps": steps,
        "seconds": seconds,
        "steps_per_second": steps / seconds,
        "threshold": threshold,
        "mean_reward": float(np.mean(returns)),
        "rewards": returns,
        "curve": curve,
    }


def read_options() -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    add = parser.add_argument
    add("--env-id", default=defaults.env_id, help="what the servers serve (default: %(default)s)")
    add("--base-url", action="append", help="a server's address, once for each (default: servers on this machine)")
    add("--servers", type=int, default=defaults.servers, help="how many to start otherwise (default: %(default)s)")
    add("--seed", type=int, default=defaults.seed, help="of everything that is random (default: %(default)s)")
    add("--num-envs", type=int, default=defaults.num_envs, help="environments on all servers (default: %(default)s)")
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
    """Start the servers, train, write the file, and say whether it is solved."""
    options = read_options()
    console = Console(width=None if sys.stdout.isatty() else 100)
    with contextlib.ExitStack() as stack:
        base_urls = options.base_url or []
        for _ in range(0 if base_urls else options.servers):
            provider = ProcessProvider(options.env_id)
            stack.callback(provider.stop)
            base_urls.append(provider.start())
        outcome = train(options, base_urls, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
    mean = outcome["mean_reward"]
    console.print(
        f"{options.env_id} on {len(base_urls)} servers: mean reward {mean:.1f} over {len(outcome['rewards'])} episodes"
        f"{verdict(mean, outcome['threshold'])}, {outcome['timesteps']:,} steps in "
        f"{outcome['seconds']:.1f} s. Written: {options.output}",
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
