"""What a page shows, read from Streamlit's own test harness."""

import json

from streamlit.testing.v1 import AppTest


def page_text(app: AppTest) -> str:
    """All words of a page in reading order."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.info, app.text, app.code, app.get("html"))
    return " ".join(str(getattr(element, "value", "") or element.proto.body) for kind in kinds for element in kind)


def chart(app: AppTest) -> dict[str, object]:
    (element,) = app.get("vega_lite_chart")
    spec: dict[str, object] = json.loads(element.proto.spec)
    return spec
