"""Tests of ``openenv_gym_server.output_checks``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import types

from openenv_gym_server.output_checks import MAX_CHECKED, MAX_QUICK, OutputChecks, fault_of

WHOLE = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}


def checks_of(schema: Any) -> OutputChecks:
    checks = OutputChecks()
    checks.learn([types.Tool(name="count", inputSchema={"type": "object"}, outputSchema=schema)])
    return checks


def found(schema: Any, structured: Any, name: str = "count") -> str | None:
    return asyncio.run(checks_of(schema).fault_of(name, structured))


def test_a_result_that_fits_has_no_fault() -> None:
    assert found(WHOLE, {"result": 3}) is None


@pytest.mark.parametrize(
    ("structured", "fault"),
    [
        ({"result": "/srv/answers.json"}, "expected type 'integer' at $.result"),
        ({}, "expected required ['result'] at $"),
        (None, "expected type 'object' at $"),
    ],
)
def test_a_fault_says_where_and_what_was_expected_and_not_what_came(structured: Any, fault: str) -> None:
    assert found(WHOLE, structured) == fault


def test_of_what_declares_nothing_or_is_not_known_anything_fits() -> None:
    assert found(None, {"result": "three"}) is None
    assert found(WHOLE, {"result": "three"}, name="other") is None


def test_what_was_told_last_counts() -> None:
    checks = checks_of(WHOLE)
    assert "count" in checks
    checks.learn([])
    assert "count" not in checks


@pytest.mark.parametrize(("size", "told"), [(MAX_QUICK, True), (MAX_CHECKED, False)])
def test_a_large_result_is_checked_beside_the_event_loop_and_the_largest_is_not(size: int, told: bool) -> None:
    assert (found(WHOLE, {"result": "x" * size}) is not None) is told


@pytest.mark.parametrize("schema", [{"type": "door"}, {"$ref": "https://elsewhere.example/schema.json"}])
def test_a_schema_that_cannot_be_used_is_a_fault(schema: Any) -> None:
    fault = fault_of(schema, {})
    assert fault is not None
    assert "no JSON Schema" in fault


def test_what_is_nested_too_deeply_to_be_checked_is_let_through() -> None:
    schema = {"type": "array", "items": {"$ref": "#"}}
    value: list[Any] = []
    for _ in range(400):
        value = [value]
    assert fault_of(schema, value) is None
