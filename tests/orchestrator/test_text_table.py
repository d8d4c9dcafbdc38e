"""The table that `breakeven query` prints: one line for each row, every value whole, in columns
that line up.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from orchestrator.text_table import WIDEST, table_lines

VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=200),
    st.binary(max_size=9),
)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20))
def test_every_row_is_one_line(rows: list[tuple[object, ...]]) -> None:
    """Whatever the values are, n rows make n + 1 lines without control characters."""
    made = list(table_lines(("a", "b", "c"), rows))
    assert len(made) == len(rows) + 1
    assert all(line.isprintable() for line in made)


def test_columns_line_up_and_nothing_is_cut() -> None:
    """Numbers stand to the right, texts to the left, wide letters take two cells, and a longer
    value is there whole.
    """
    long = "x" * (WIDEST + 20)
    made = list(
        table_lines(
            ("name", "n"),
            [("tome", 1), ("数字", 1000), (None, None), (long, 5), ("two\nlines\x1b[31m", 7)],
        )
    )
    assert made[0] == "name                   n"
    assert made[1:4] == ["tome                   1", "数字                1000", ""]
    assert made[4:] == [f"{long}     5", "two\\nlines\\x1b[31m     7"]
    assert len({cell_len(line) for line in made if line and long not in line}) == 1
