"""The keys of a sweep file: defaults, durations, and a message for each wrong one."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeps.language.file_schema import parse, seconds
from sweeps.language.yaml_reader import SweepError, read
from sweeps.model.job import Protocol

HEAD = "schema: 1\nname: trial\n"


def test_everything_but_schema_and_name_has_a_default() -> None:
    """The defaults of the language."""
    sweep = parse(read("x.yaml", HEAD))
    assert sweep.baselines == ("dense",)
    assert sweep.jobs.protocols("vision") == {"latency": Protocol()}
    assert (sweep.retry.max_attempts, sweep.retry.when) == (2, ("worker_crash", "node_died"))
    assert (sweep.limits.max_jobs, sweep.limits.arms_per_job) == (5000, 16)


def test_a_protocol_is_read_with_its_units() -> None:
    """Durations come out in seconds, and what is not written keeps its default."""
    latency = "{pairs: {max: 50}, half_width: 0.02, budget: 250ms, timeout: 2m, rounds: 3}"
    sweep = parse(read("x.yaml", f"{HEAD}jobs: {{latency: {latency}}}\n"))
    expected = Protocol(
        pairs_min=30, pairs_max=50, half_width=0.02, budget_s=0.25, timeout_s=120.0, rounds=3
    )
    assert sweep.jobs.latency.protocol() == expected


@pytest.mark.parametrize("empty", ["jobs:\n", "jobs: {}\n", "zip:\nexclude:\nretry:\n"])
def test_an_empty_key_is_its_default(empty: str) -> None:
    """A key without a value has its default."""
    assert parse(read("x.yaml", HEAD + empty)) == parse(read("x.yaml", HEAD))


def test_an_empty_kind_has_its_defaults() -> None:
    """Latency named without settings is latency where nothing is named."""
    assert parse(read("x.yaml", HEAD + "jobs: {latency: }\n")).jobs.protocols("vision") == {
        "latency": Protocol()
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("250ms", 0.25),
        ("10s", 10.0),
        ("1.5m", 90.0),
        ("1h", 3600.0),
        ("2 s", 2.0),
        (7, 7.0),
        (0.5, 0.5),
    ],
)
def test_durations(written: str | float, value: float) -> None:
    """Milliseconds, seconds, minutes, hours, or a plain number of seconds."""
    assert seconds(written) == value


@pytest.mark.parametrize("written", ["10x", "s", "", "-1s", "1m30s", True, None, [1]])
def test_what_is_no_duration(written: Any) -> None:
    """Anything else is refused with examples of what is right."""
    with pytest.raises(ValueError, match="write 250ms, 10s, 5m, 1h"):
        seconds(written)


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("name: x\n", 1, "schema", "is missing; write `schema: 1`"),
        ("schema: 1\n", 1, "name", "is missing"),
        ("schema: 2\nname: x\n", 1, "schema", "write `schema: 1`"),
        ("schema: true\nname: x\n", 1, "schema", "write `schema: 1`"),
        ("schema: 1.0\nname: x\n", 1, "schema", "write `schema: 1`"),
        ("schema: 1\nname: a b\n", 2, "name", "match pattern"),
        ("schema: 1\nname: 3\n", 2, "name", "needs text, not 3"),
    ],
)
def test_wrong_keys_and_values(text: str, line: int, key: str, message: str) -> None:
    """Each message names file, line and key, and what would be right."""
    with pytest.raises(SweepError) as caught:
        parse(read("x.yaml", text))
    assert (caught.value.line, caught.value.key) == (line, key)
    assert message in caught.value.problem
    assert str(caught.value).startswith(f"x.yaml:{line}: {key}: ")


def test_a_sweep_is_a_value() -> None:
    """Two readings of one text are equal and hash alike."""
    make: Callable[[], Any] = lambda: parse(read("x.yaml", HEAD + "axes: {image_size: [32]}\n"))  # noqa: E731 - read twice
    assert make() == make()
    assert hash(make()) == hash(make())
