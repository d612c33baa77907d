"""What a type checker says of the clients: values from synchronous calls, awaitables from the others, no ``Any``."""

from __future__ import annotations

import subprocess
import sys
import textwrap

SCRIPT = textwrap.dedent(
    """
    from typing import Any, assert_type
    from openenv_gym import Action, EnvClient, GenericAction, GenericEnvClient, Observation, State, StepResult
    from openenv_gym import SyncEnvClient

    class Say(Action):
        message: str

    class Heard(Observation):
        text: str

    class Own(EnvClient[Say, Heard, State]):
        def _step_payload(self, action: Say) -> dict[str, Any]:
            return {"message": action.message}

        def _parse_result(self, payload: dict[str, Any]) -> StepResult[Heard]:
            return StepResult(Heard(**payload["observation"]), payload["reward"], payload["done"])

        def _parse_state(self, payload: dict[str, Any]) -> State:
            return State(**payload)

    async def awaited(client: Own) -> None:
        async with client as same:
            assert_type(same, Own)
        assert_type(await client.connect(), Own)
        assert_type(await client.reset(seed=1), StepResult[Heard])
        assert_type((await client.step(Say(message="x"))).observation, Heard)
        assert_type(await client.state(), State)
        assert_type(await client.new_session(), Own)
        assert_type(await Own.from_docker_image("image"), Own)
        assert_type(client.mode in ("simulation", "production"), bool)

    def called(client: Own) -> None:
        with client.sync() as env:
            assert_type(env, SyncEnvClient[Say, Heard, State])
            assert_type(env.reset(seed=1), StepResult[Heard])
            assert_type(env.step(Say(message="x")).observation, Heard)
            assert_type(env.state(), State)
            assert_type(env.new_session(), SyncEnvClient[Say, Heard, State])
        assert_type(Own.from_env("me/talk").sync(), SyncEnvClient[Say, Heard, State])

    def generic(client: GenericEnvClient) -> None:
        env = client.sync()
        assert_type(env.step({"message": "x"}).observation, dict[str, Any])
        assert_type(env.step(GenericAction(message="x")), StepResult[dict[str, Any]])
        assert_type(env.step(Say(message="x")).reward, float | None)
        assert_type(env.state(), dict[str, Any])

    def wrong(client: Own) -> None:
        client.sync().step("text")  # type: ignore[arg-type]
        with client:
            print("never")
    """
)


def test_a_strict_type_checker_sees_values_where_there_are_values(tmp_path):
    script = tmp_path / "uses_clients.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert finished.returncode == 0, finished.stdout
