"""A profile whose walls contradict the timing of the same arm: page and report state both speed-ups
instead of a reason.
"""

from html import unescape
from pathlib import Path

import pytest

from orchestrator.report.data import load_report
from orchestrator.report.why import why_sections
from tests.store.profile_fixtures import Classes, a_profiled_outcome, with_changes
from tests.webapp import simulated
from tests.webapp.conftest import Open
from tests.webapp.explained_store import ARMS, profile_job
from tests.webapp.page_elements import page_text
from tests.webapp.simulated import ENVIRONMENT, store_outcomes
from webapp.display import texts

SIZE = 224


@pytest.mark.parametrize(("arm_ms", "contradicted"), [(60.0, True), (None, False)])
def test_page_and_report_agree(
    opened: Open, tmp_path: Path, arm_ms: float | None, contradicted: bool
) -> None:
    """Where the intervals meet, the reason stands there, with the same words in both."""
    timed = simulated.outcome(simulated.job(SIZE, arms=ARMS))
    assert timed.samples is not None
    walls = {
        arm: 1e3 * timed.samples.seconds[0][column]
        for column, arm in reversed(list(enumerate(timed.samples.arms)))
    }
    walls[1] = walls[1] if arm_ms is None else arm_ms * walls[0]
    times: list[Classes] = [
        {"device": 0.8 * walls[arm], "host": 0.2 * walls[arm]} for arm in range(3)
    ]
    profiled = with_changes(
        a_profiled_outcome(profile_job(SIZE), times, environment=ENVIRONMENT, host="simulated"),
        half=0.1,
    )
    url = store_outcomes(tmp_path / "s.db", "explained", timed, profiled)
    (section, *_) = why_sections(load_report(url, "explained"))
    (line,) = (line.text for line in section.lines if line.text.startswith("topk"))
    assert ("No explanation, since its walls contradict the timing" in line) is contradicted
    words = unescape(
        page_text(opened(url, "screens/explain.py", sweep="explained", arm="topk keep_rate=0.5"))
    )
    assert f"{texts.typeset(line.partition(': ')[2])}." in words
