"""The policy module at run time: it stands alone on Python 3.9, and answers "unmodified" wherever
nothing was measured.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeps.analysis import policy
from sweeps.analysis.policy import Policy, PolicyError

SOURCE = Path(policy.__file__)
ENVIRONMENT = {**os.environ, "PYENV_VERSION": "3.9"}
"""With which pyenv, where that manages the interpreters, starts a 3.9."""
ARM = {
    "label": "topk keep_rate=0.5",
    "stack": [{"method": "topk", "version": 1, "params": {"keep_rate": 0.5}}],
    "overrides": {},
}
FAST = {"label": "dense runtime=compile", "stack": [], "overrides": {"runtime": "compile"}}


def span(
    first: int, last: int, arm: int | None, at_least: float = 1.0, *measured: int
) -> dict[str, Any]:
    return {
        "first": first,
        "last": last,
        "arm": arm,
        "at_least": at_least,
        "measured": measured,
        "evidence": ["c1"] if arm is not None else [],
        "speedups": {size: [2 * at_least, at_least, 4 * at_least] for size in measured},
    }


def rule(
    batch: int, *ranges: dict[str, Any], tokens: tuple[int, ...] = (16, 64, 196), **condition: Any
) -> dict[str, Any]:
    known = {"model": "m", "device": "cpu", "dtype": "float32", **condition}
    own = {"batch": batch, "tokens": tokens, "ranges": ranges}
    return {"condition": known, "arms": [ARM, FAST], **own}


def content(*rules: dict[str, Any]) -> dict[str, Any]:
    head = {"format": policy.POLICY_FORMAT, "version": policy.POLICY_VERSION}
    made: dict[str, Any] = json.loads(json.dumps({**head, "rules": rules}))
    return made


RANGES = (
    span(16, 63, None, 1.0, 16, 64),
    span(64, 150, 0, 1.2, 64, 196),
    span(151, 196, 1, 1.1, 196),
)


@pytest.fixture
def chosen() -> Policy:
    return Policy(content(rule(1, *RANGES), rule(8, span(16, 196, 0, 1.5, 16, 64, 196))))


def test_it_chooses_what_was_measured(chosen: Policy) -> None:
    """The arm of the range, with its method, parameters, overrides, a reason and the rows that show
    it.
    """
    found = chosen.choose(tokens=100, batch=1)
    assert (found.arm, found.method, found.params) == (ARM["label"], "topk", {"keep_rate": 0.5})
    assert not found.unmodified
    reason = "at least 1.20x as fast as the unmodified model at 64, 196 tokens, batch 1"
    assert (found.reason, found.evidence) == (reason, ("c1",))
    override = chosen.choose(tokens=196, batch=1)
    assert (override.method, override.params) == (None, {})
    assert override.overrides == {"runtime": "compile"}
    assert chosen.choose(tokens=16, batch=8).at_least == 1.5


@pytest.mark.parametrize(
    ("tokens", "least", "shown"),
    [(100, 1.0004, "1.0004x"), (170, 1.2849, "1.28x"), (196, 1.5, "1.50x")],
)
def test_each_size_has_a_bound_of_its_own(tokens: int, least: float, shown: str) -> None:
    """That of its own interval, between two sizes the lower one of both; rounded down, and never to
    a bound that states nothing.
    """
    range_ = span(64, 196, 0, 1.0004, 64, 144, 196)
    range_["speedups"] = {
        "64": [1.1, 1.0004, 1.2],
        "144": [1.35, 1.2849, 1.4],
        "196": [1.6, 1.5, 1.7],
    }
    found = Policy(content(rule(1, range_))).choose(tokens=tokens, batch=1)
    assert found.at_least == least
    assert shown in found.reason


@pytest.mark.parametrize(
    ("tokens", "batch", "reason"),
    [
        (16, 1, "no arm is known to be faster at 16 tokens (measured at 16, 64)"),
        (15, 1, "15 tokens were not measured at batch 1; measured: 16 to 196"),
        (197, 8, "197 tokens were not measured at batch 8; measured: 16 to 196"),
        (100, 2, "batch 2 was not measured; measured batches: 1, 8"),
    ],
)
def test_elsewhere_the_model_stays_as_it_is(
    chosen: Policy, tokens: int, batch: int, reason: str
) -> None:
    """Nothing faster, outside of the sizes, or another batch: unmodified, with the reason."""
    found = chosen.choose(tokens=tokens, batch=batch)
    assert found.unmodified
    assert (found.at_least, found.stack, found.overrides) == (1.0, (), {})
    assert found.reason.startswith(reason)


def test_rules_that_contradict_each_other_choose_nothing() -> None:
    """Two conditions with different answers: unmodified until one of them is named; with equal
    answers the lesser promise.
    """
    one = rule(1, span(16, 196, 0, 1.3, 16, 196))
    both, agreed = (
        Policy(content(one, rule(1, span(16, 196, arm, 1.2, 16, 196), dtype="float16")))
        for arm in (1, 0)
    )
    found = both.choose(tokens=64, batch=1)
    assert found.unmodified
    assert found.reason == "2 rules match and differ; load the policy for one of them, by dtype"
    assert both.restrict(dtype="float16").choose(tokens=64, batch=1).arm == FAST["label"]
    assert agreed.choose(tokens=64, batch=1).at_least == 1.2
    for condition, problem in (
        (
            {"dtype": "int8"},
            "nothing was measured with dtype 'int8'; measured are float16, float32",
        ),
        ({"dtyp": "int8"}, "'dtyp' is no field of these rules; they have device, dtype, model"),
    ):
        with pytest.raises(PolicyError, match=problem):
            both.restrict(**condition)


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    """Other JSON, a later version, and text that is no JSON: one line that names what is
    expected.
    """
    file = tmp_path / "policy.json"
    for text, message in (
        ("{}", "its `format` is not 'breakeven-policy'"),
        ("[1]", "its `format` is not"),
        (
            '{"format": "breakeven-policy", "version": 2}',
            "the policy has version 2, and this module reads version 1",
        ),
        ("{", "policy.json is no JSON"),
    ):
        file.write_text(text)
        with pytest.raises(PolicyError, match=message):
            Policy.load(file)
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "none.json")


def test_its_syntax_is_that_of_python_3_9() -> None:
    """It parses by the grammar of 3.9, imports the standard library alone, and calls nothing that
    came later.
    """
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 9))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "json", "pathlib", "typing"}
    keywords = {
        word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords
    }
    assert not keywords & {"strict", "slots", "kw_only"}


def interpreters() -> list[str]:
    """This Python, and a 3.9 where the machine has one that starts."""
    old = shutil.which("python3.9")
    starts = (
        old is not None
        and subprocess.run(
            [old, "-c", ""], env=ENVIRONMENT, capture_output=True, check=False
        ).returncode
        == 0
    )
    return [sys.executable, *([old] if old is not None and starts else [])]


@pytest.mark.parametrize("python", interpreters())
def test_it_runs_alone_in_a_clean_interpreter(tmp_path: Path, python: str) -> None:
    """Copied beside a server, without site-packages, this project or the environment's
    variables.
    """
    shutil.copy(SOURCE, tmp_path / "policy.py")
    (tmp_path / "policy.json").write_text(json.dumps(content(rule(1, *RANGES))))
    program = (
        "import sys; sys.path.insert(0, '.'); from policy import Policy; p ="
        " Policy.load('policy.json', model='m'); print(p.choose(tokens=100, batch=1).arm,"
        " p.choose(tokens=1, batch=1).unmodified); print(sorted(name for name in sys.modules if"
        " name.split('.')[0] in ('sweeps', 'torch', 'numpy', 'pydantic')))"
    )
    done = subprocess.run(
        [python, "-I", "-S", "-c", program],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "topk keep_rate=0.5 True\n[]\n")
