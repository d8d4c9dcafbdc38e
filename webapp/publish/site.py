"""What a published folder holds besides the pages of sweeps and points: the home page, the feed and
the dataset card.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape

from store.rows.row_mapping import timestamp
from webapp.publish import html
from webapp.publish.sweep_page import PublishedSweep
from webapp.widgets.answers import overviews
from webapp.widgets.arm_table import overview_image

CARD_CURVES = (360, 90)
"""Pixels of curves in small."""
QUESTION = "From where on does an optimisation that saves FLOPs also save time?"


def home_page(sweeps: Iterable[PublishedSweep]) -> str:
    """Every sweep with its curves in small, the answer, age and environment."""
    listed, cards = list(sweeps), []
    known = overviews(tuple(sweep.name for sweep in listed))
    for sweep in listed:
        image = overview_image(known[sweep.name], CARD_CURVES) if sweep.name in known else ""
        devices = dict.fromkeys(f"{row['device_name']} {row['host']}" for row in sweep.environments)
        cards.append(
            f"<article class=card><p class=soft>{escape(sweep.name)}</p><h2><a"
            f" href={sweep.address}>{escape(sweep.answer)}</a></h2>{image}<p>"
            f"{escape(sweep.row['question'])}</p><p class=soft>{escape(', '.join(devices))} ·"
            f" {html.dated(sweep.measured_at)} · {sweep.row['measured']} comparisons</p></article>"
        )
    return html.page(QUESTION, [f"<h1>{QUESTION}</h1><div class=cards>", *cards, "</div>"])


def feed(sweeps: Iterable[PublishedSweep], site: str) -> str:
    """A JSON Feed of what was measured; `site` begins its addresses, empty where it is not
    known.
    """
    items = [
        {
            "id": f"{site}{sweep.address}",
            "url": f"{site}{sweep.address}",
            "title": f"{sweep.name}: {sweep.answer}",
            "content_text": sweep.row["question"],
            "date_modified": timestamp(sweep.measured_at),
        }
        for sweep in sweeps
    ]
    version = "https://jsonfeed.org/version/1.1"
    return json.dumps({"version": version, "title": "Breakeven", "items": items}, indent=1)


def dataset_card(views: Sequence[str], sweeps: Iterable[PublishedSweep]) -> str:
    """`README.md` with the front matter by which a dataset hub finds the Parquet files."""
    configs = [f"- config_name: {name}\n  data_files: data/{name}.parquet" for name in views]
    listed = [f"- [{sweep.name}]({sweep.address}): {sweep.answer}" for sweep in sweeps]
    return html.fill_template("card.md", configs="\n".join(configs), sweeps="\n".join(listed))
