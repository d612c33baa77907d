"""The examples that learn: a short run of each, and one that solves its environment."""

from __future__ import annotations

import json

import pytest

from tests.house.test_programs import LEARNERS, run

pytestmark = pytest.mark.programs


@pytest.mark.parametrize("program", LEARNERS)
def test_a_learning_example_writes_its_curve_and_its_score(program, tmp_path):
    output = tmp_path / ("new" * 40) / "results.json"
    text = run(f"examples/{program}", "--timesteps", "512", "--episodes", "2", "--output", str(output))
    outcome = json.loads(output.read_text())
    assert outcome["timesteps"] == outcome["curve"][-1][0] == 512
    assert len(outcome["rewards"]) >= 2
    assert str(output) in text
    assert "not solved" in text


@pytest.mark.timeout(300)
def test_the_example_with_stable_baselines3_solves_cartpole(tmp_path):
    output = tmp_path / "results.json"
    run("examples/ppo_sb3_cartpole.py", "--output", str(output), timeout_s=280)
    outcome = json.loads(output.read_text())
    assert outcome["mean_reward"] >= 475
    assert len(outcome["rewards"]) == 20
