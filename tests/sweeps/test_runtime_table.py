"""Break-evens by runtime in cells, for the report and the page Answer."""

from sweeps.analysis.rows import ClaimRow, ConditionRow
from sweeps.text.curves import break_even_cell, runtime_table
from tests.fixtures.typed_rows import row_of


def test_a_row_for_each_runtime_and_dtype() -> None:
    """In the order of the runtimes; with the likeliest place where there is one, a dash for an arm
    of one size; one runtime alone needs no table.
    """
    claim = row_of(
        ClaimRow,
        axis="tokens",
        metric="latency",
        verdict="crossing",
        direction="gains",
        x=18.4,
        x_low=16.0,
        x_high=36.0,
    )
    kinds = (("openvino", "float32"), ("eager", "float32"), ("eager", "bfloat16"))
    points = [row_of(ConditionRow, runtime=runtime, dtype=dtype) for runtime, dtype in kinds]
    curves = [(point, "topk", [claim]) for point in points]
    found = runtime_table([*curves, (points[0], "tome", [])])
    assert list(found) == ["eager bfloat16", "eager float32", "openvino float32"]
    assert found["eager float32"] == {"topk": f"{break_even_cell([claim]).text}, likely 18"}
    assert found["openvino float32"]["tome"] == "-"
    assert runtime_table(curves[1:]) == {}
