"""The sentences on break-evens are the same in the app and in the report, for images and for
language.
"""

from pathlib import Path

import pytest

from orchestrator.report.answers import answer_sections
from orchestrator.report.data import load_report
from orchestrator.report.generation import generation_sections
from orchestrator.report.speedup import speedup_sections
from tests.store.language_fixtures import a_generation, a_generation_job, larosa
from tests.webapp.conftest import Open
from tests.webapp.page_elements import cells, page_text
from tests.webapp.simulated import store_outcomes


@pytest.mark.parametrize("axis", ["tokens", "GMACs"])
def test_images(opened: Open, filled: str, axis: str) -> None:
    """The cell of each arm has the line of the report for its arm; the report then has the verdicts
    along the axis. Its first line is the answer of the page.
    """
    app, report = opened(filled, sweep="quickstart", axis=axis), load_report(filled, "quickstart")
    shown, titled = cells(app), {each.title: each.lines for each in speedup_sections(report)}
    lines = [line.text for line in titled[f"Break-even in {axis}"]]
    assert len(shown) == 5
    for arm, sentence in shown.items():
        assert any(line.startswith(f"{arm}: {sentence}. Along ") for line in lines)
    (section,) = answer_sections(report)
    share, best = section.lines[0].text.split("; best ")
    assert axis != "tokens" or share in page_text(app)
    arm, sentence = next(iter(shown.items()))
    assert axis != "tokens" or best == f"{arm}: {sentence}."


def test_language(opened: Open, tmp_path: Path) -> None:
    """Prompts are counted in prompt tokens in both."""
    outcomes = [
        a_generation(a_generation_job(prompt, (larosa(0.5),)), (1.0, 1.4))
        for prompt in (16, 64, 256)
    ]
    url = store_outcomes(tmp_path / "prompts.db", "prompts", *outcomes)
    ((arm, sentence),) = cells(opened(url, sweep="prompts", metric="time per output token")).items()
    assert sentence == "pays at every point measured, 16 to 256 prompt tokens"
    texts = [
        line.text
        for section in generation_sections(load_report(url, "prompts"))
        for line in section.lines or ()
    ]
    assert any(
        text.startswith(f"{arm}, llama-220m, against dense: {sentence}. Along tokens: ")
        for text in texts
    )
