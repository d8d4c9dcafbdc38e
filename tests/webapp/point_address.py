"""Addresses of the evidence of stored points."""

from store.open.engine import connect
from tests.fixtures.sql_rows import rows


def point_query(url: str, where: str = "compared = 'ratio'") -> dict[str, str]:
    """The query of the first answer for which `where` holds."""
    engine = connect(url)
    first = rows(
        engine,
        f"SELECT comparison_id, environment, host FROM effect_row WHERE {where} ORDER BY"
        " comparison_id",
    )[0]
    engine.dispose()
    return {
        "id": first["comparison_id"],
        "environment": first["environment"],
        "host": first["host"],
    }
