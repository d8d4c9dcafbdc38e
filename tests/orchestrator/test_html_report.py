"""The HTML and LaTeX reports: complete, self-contained, and safe whatever names the data have."""

import dataclasses
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
from playwright.sync_api import Browser

from orchestrator.report.data import Report, load_report
from orchestrator.report.html_page import ReportChart, draw_charts, render_html
from orchestrator.report.latex_table import PACKAGES, escape_latex, render_latex
from orchestrator.report.render import sections
from tests.orchestrator.commands import ROOT, breakeven

HOSTILE = (
    "</title><script>alert('x')</script><img src=http://evil.example/x onerror=alert(1)> &"
    ' "quoted" \\input{/etc/passwd} 100% $x_1^2$ ~#{}'
)


class Page(HTMLParser):
    """What a browser would see: tags with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def report(stored: Path) -> Report:
    return load_report(str(stored / "breakeven.db"), "quickstart")


def hostile(report: Report) -> Report:
    """The report with a hostile text in every column of text, and in name, question and sweep
    file.
    """
    changed: dict[str, Any] = {"name": HOSTILE, "question": HOSTILE, "text": HOSTILE}
    keep = {
        "kind",
        "metric",
        "verdict",
        "params",
        "compared",
        "flags",
        "axis",
        "direction",
        "runtime",
        "facts",
        "work_unit",
        "varied_parameter",
        "state",
    }
    for field in dataclasses.fields(report):
        frame = getattr(report, field.name)
        if field.name not in changed and isinstance(frame, pd.DataFrame):
            texts = [
                name
                for name in frame.columns
                if name not in keep and name[-3:] != "_id" and frame[name].map(type).eq(str).any()
            ]
            changed[field.name] = frame.assign(
                **{name: frame[name].where(frame[name].isna(), HOSTILE) for name in texts}
            )
    return dataclasses.replace(report, **changed)


def test_the_page_has_every_part_in_order(stored: Path) -> None:
    """Question, answer, charts, points, cost model, verdicts with flags, what to do, provenance,
    and the sweep file.
    """
    done = breakeven(
        "report", "quickstart", "--format", "html", folder=stored, PYTHONPATH=str(ROOT)
    )
    assert done.returncode == 0, done.stderr
    page = Page(done.stdout)
    assert (page.open, page.unbalanced) == ([], [])
    text = "".join(page.text)
    parts = (
        "From how many tokens on does token reduction pay on this machine?",
        "Answers",
        "Charts",
        "Speed-up in latency against tokens",
        "deit_tiny_patch16_224 (random weights)",
        "Break-even in tokens",
        "Cost model: time = launch + work",
        "flag thermal_slowdown: ",
        "What to do next",
        "Provenance",
        "from (UTC)",
        "Measure it again",
        "name: quickstart",
    )
    places = [text.find(part) for part in parts]
    assert -1 not in places, dict(zip(parts, places, strict=True))
    assert places == sorted(places)
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(images) >= 1
    assert all(
        (each["src"] or "").startswith("data:image/svg+xml;base64,") and each["alt"]
        for each in images
    )


def references(page: Page) -> list[str]:
    """What a browser would load or follow."""
    names = {
        "src",
        "href",
        "srcset",
        "action",
        "data",
        "poster",
        "background",
        "xlink:href",
        "formaction",
    }
    return [
        str(value)
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in names or name.startswith("on")
    ]


def test_nothing_is_loaded_and_no_name_is_code(report: Report) -> None:
    """Hostile texts in every field stay texts: neither tag, attribute nor style comes of them, and
    no reference leaves the page.
    """
    charts = [ReportChart(HOSTILE, "<svg/>"), ReportChart(HOSTILE, "", HOSTILE)]
    plain, attacked = (
        render_html(each, list(sections(each)), charts) for each in (report, hostile(report))
    )
    page = Page(attacked)
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in Page(plain).tags}
    assert (page.open, page.unbalanced) == ([], [])
    assert all(reference.startswith("data:image/svg+xml;base64,") for reference in references(page))
    assert "".join(page.text).count("alert('x')") > 10
    assert not re.search(r"@import|url\(", attacked)
    assert "default-src 'none'" in attacked


def test_where_no_chart_is_drawn_the_reason_is_given(
    stored: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web app draws them in its own process; for a sweep that it cannot draw there is a line in
    place of a chart.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    missing, *_ = draw_charts(
        dataclasses.replace(report, name="--nothing"), str(stored / "breakeven.db")
    )
    assert missing.svg == ""
    assert "contains no sweep called --nothing" in missing.problem


def check_latex(text: str) -> None:
    """Braces and environments are balanced, rows have as many cells as columns, and no special
    letter is left as it is.
    """
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\[\\{}$&#%_]", "", body)
    assert bare.count("{") == bare.count("}")
    depth = 0
    for letter in bare:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    stack: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", body):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    assert not re.findall(r"[#^~<>]|(?<![A-Za-z])_", re.sub(r"\\label\{[^}]*\}|>(?=\{)", "", bare))
    assert "%" not in bare
    assert re.sub(r"\$(\{\})?\\(rightarrow|times|pm)(\{\})?\$", "", bare).count("$") == 0
    tables = re.findall(
        r"\\begin\{tabularx\}\{\\linewidth\}\{(.*)\}\n(.*?)\\end\{tabularx\}", body, re.DOTALL
    )
    assert len(tables) == body.count(r"\begin{tabularx}") > 0
    for form, rows in tables:
        columns = re.sub(r"@\{\$\{\}\\rightarrow\{\}\$\}|>\{\S*?\}|\[\S*?\]", "", form)
        assert set(columns) <= set("XSlr")
        for row in re.findall(r"^(.*) \\\\$", rows, re.MULTILINE):
            spanned = sum(int(each) - 1 for each in re.findall(r"\\multicolumn\{(\d)\}", row))
            assert len(re.findall(r"(?<!\\)&", row)) + spanned == len(columns) - 1
    commands = set(re.findall(r"\\([A-Za-z]+)", body))
    known = {
        "paragraph",
        "begin",
        "end",
        "centering",
        "footnotesize",
        "caption",
        "label",
        "toprule",
        "midrule",
        "bottomrule",
        "setlength",
        "tabcolsep",
        "linewidth",
        "raggedright",
        "arraybackslash",
        "multicolumn",
    }
    assert commands <= known | {"rightarrow", "times", "pm"} | {f"text{name}" for name in TEXT}


TEXT = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "quotedbl")


def test_latex_has_a_table_and_states_the_method(stored: Path) -> None:
    """A booktabs table of the points with a caption, and what was measured, how, on how many pairs,
    with which intervals.
    """
    text = breakeven("report", "quickstart", "--format", "latex", folder=stored).stdout
    check_latex(text)
    for part in (
        r"\paragraph{Method.}",
        "Simulated CPU",
        "40 pairs for each of",
        r"99.5 \% interval",
        r"mean times of each in one state of the machine",
        "leaving out one visit at a time",
        r"\toprule",
        r"topk keep\_rate=0.5",
        r"@{${}\rightarrow{}$}S[table-format=",
        r"\multicolumn{2}{c}{speed-up [99.5 \%]}",
    ):
        assert part in text
    assert text.count(r"\begin{tabularx}") == 1


def test_latex_names_no_specimen(tmp_path: Path) -> None:
    """Neither the id of the one GPU nor the suffix of a tree with changes stands in a paper."""
    outcomes, file = (
        str(ROOT / "sweeps" / name)
        for name in ("references/quickstart_gpu_h100.jsonl", "quickstart_gpu.yaml")
    )
    imported = breakeven("import", outcomes, "--sweep", file, "--device", "cuda", folder=tmp_path)
    assert imported.returncode == 0, imported.stderr
    text = breakeven("report", "quickstart_gpu", "--format", "latex", folder=tmp_path).stdout
    assert re.search(r"of the source at commit [0-9a-f]{12} with changes\.", text)
    assert "torch 2.11.0" in text
    assert not re.search(r"uuid|GPU-[0-9a-f]{8}|-dirty|[0-9a-f]{16}", text)


def test_columns_of_latex_are_chosen(stored: Path) -> None:
    """In the order given; few of them fit one of two columns of a page, and one that no table has
    is refused with those there are.
    """
    asked = ("report", "quickstart", "--format", "latex", "--columns")
    text = breakeven(*asked, "verdict,method,speed-up", folder=stored).stdout
    check_latex(text)
    assert r"verdict & method & \multicolumn{2}{c}{speed-up" in text
    assert r"\begin{table}" in text
    assert r"\begin{table*}" in breakeven(*asked[:-1], folder=stored).stdout
    wrong = breakeven(*asked, "method,speed", folder=stored)
    assert wrong.returncode == 2
    assert "no table has a column 'speed'; choose from method, tokens" in wrong.stderr


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
@pytest.mark.parametrize(
    ("form", "columns"), [("10pt", ""), ("twocolumn", "method,tokens,speed-up,verdict")]
)
def test_tables_fit_a_page(report: Report, tmp_path: Path, form: str, columns: str) -> None:
    """Compiled without an error or an overfull box, in one column and in two, with names that were
    meant to break it.
    """
    names = [name for name in columns.split(",") if name]
    pages = [render_latex(found, names) for found in (report, hostile(report))]
    (tmp_path / "page.tex").write_text(
        rf"\documentclass[{form}]{{article}}\usepackage[margin=0.75in]{{geometry}}{PACKAGES}"
        rf"\begin{{document}}{chr(10).join(pages)}\end{{document}}"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "page.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert re.findall("Overfull.*", log) == []


def test_hostile_names_are_printed_in_latex(report: Report) -> None:
    """Commands in names are printed as letters, comments cannot end early, and what LaTeX counts
    stays balanced.
    """
    text = render_latex(hostile(report))
    check_latex(text)
    assert r"\textbackslash{}input\{/etc/passwd\}" in text
    assert all("\\input" not in line for line in text.splitlines() if not line.startswith("%"))
    assert escape_latex("a_b & 5 % {x}\n\\end") == r"a\_b \& 5 \% \{x\} \textbackslash{}end"


@pytest.mark.parametrize(("scheme", "width"), [("light", 800), ("dark", 1440)])
def test_a_browser_loads_nothing_and_nothing_sticks_out(
    report: Report, browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """In Chromium the page requests itself alone, reports no error, and fits the window; hostile
    names run no script.
    """
    file = tmp_path / "page.html"
    charts = [
        ReportChart("a chart", '<svg xmlns="http://www.w3.org/2000/svg" width="1300" height="9"/>')
    ]
    file.write_text(
        render_html(hostile(report), list(sections(hostile(report))), charts), encoding="utf-8"
    )
    requests: list[str] = []
    problems: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    reach = page.evaluate("document.documentElement.scrollWidth")
    drawn = page.evaluate(
        "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
    )
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
    assert problems == []
    assert reach <= width
    assert drawn
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
