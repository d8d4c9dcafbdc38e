"""The check of agreement finds what it is made for."""

from tests.benchmarks.agreement import Interval, misses


def test_a_run_beside_the_others_is_found() -> None:
    """Equal runs agree; one that lies apart misses by both widths, and one in another state is
    compared with nothing.
    """
    alike = [Interval(0.10, 0.02, "faster", slow=False)] * 4
    assert misses(alike) == [(False, False)] * 4
    apart = Interval(0.20, 0.02, "faster", slow=False)
    assert misses([*alike, apart])[-1] == (True, True)
    assert len(misses([*alike, apart._replace(slow=True)])) == 4
    beside = Interval(0.122, 0.02, "faster", slow=False)
    assert misses([*alike, beside])[-1] == (True, False)
