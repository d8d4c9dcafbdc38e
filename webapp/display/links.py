"""Addresses of pages: relative ones, so that they also hold behind a prefix, with every choice as a
query parameter.
"""

from collections.abc import Sequence
from urllib.parse import urlencode

EVIDENCE = "point"
"""Address of the page with the evidence of one point."""
POINT_KEY = ("comparison_id", "environment", "host")
"""Columns of views that together name one point."""


def page_link(path: str, **query: str | int | float | Sequence[str] | None) -> str:
    """The address of a page with these query parameters, such as `explain?sweep=quickstart`; `None`
    is left out.
    """
    given = {name: value for name, value in query.items() if value is not None}
    words = urlencode(given, doseq=True)
    return f"{path or './'}?{words}" if words else path or "./"


def point_link(comparison_id: str, environment: str | None = None, host: str | None = None) -> str:
    """The address of the evidence of one point of the view `speedup` or `effect`: of the newest
    answer where the place is open.
    """
    return page_link(EVIDENCE, id=comparison_id, environment=environment, host=host)
