"""Tables of ncu: both pages, locales, units and what is missing; means are weighted by time and
never stand for the whole arm.
"""

import csv
import io
from pathlib import Path

import pytest

from sweeps.importers.ncu import NcuReport, covered_share, function_name, ncu_profiles, read_ncu
from sweeps.importers.traces import ImportedProfile, TraceError, summary_lines
from sweeps.model.profile import Activities
from tests.fixtures.ncu_tables import CASTS, PREAMBLE, RAW, details_page, raw_page
from tests.fixtures.published_traces import DURATIONS_THOR, SUMMARY, SUMMARY_THOR

PAGES = {
    "raw": raw_page(),
    "raw with semicolons": raw_page(separator=";", cell=lambda text: text),
    "raw in usecond in plain numbers": raw_page(locale="C", unit="usecond"),
    "raw behind lines of ncu and the program": PREAMBLE + raw_page(),
    "raw with a byte order mark": "\ufeff" + raw_page(),
    "raw with ranges": raw_page(nvtx="breakeven:comparison:0123456789abcdef:none"),
    "details": details_page(),
    "details with semicolons": details_page(locale="C", separator=";"),
    "details with tabs": PREAMBLE + details_page(separator="\t"),
}


def profile_of(report: NcuReport, forwards: int | None = None) -> ImportedProfile:
    """The only profile of a report."""
    (found,) = ncu_profiles(report, forwards)
    return found


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_pages_locales_and_units(page: str) -> None:
    """Every form of the same report gives the same kernels; means of a name are weighted by the
    time of its launches.
    """
    report = read_ncu(page)
    assert [each.name for each in report.kernels] == [each.name for each in CASTS]
    assert [each.seconds for each in report.kernels] == pytest.approx(
        [each.ns * 1e-9 for each in CASTS], rel=1e-5
    )
    assert report.missing == ()

    profile = profile_of(report).profile
    gemm, cast = profile.activities
    assert (gemm.count, cast.count) == (1, 2)
    counters = "sm_throughput memory_throughput achieved_occupancy l1_hit_rate l2_hit_rate"
    for found, values in (
        (gemm, (91.75, 40.5, 33.25, 60.5, 80.5)),
        (cast, (4, 86.25, 76.5, 10.5, 56.5)),
    ):
        expected = dict(zip(counters.split(), values, strict=True))
        assert found.counters == pytest.approx(expected)
    assert (profile.times, profile.kernel_time_share) == ({}, None)


def without(page: str, *columns: str) -> str:
    """The page less some columns."""
    rows = list(csv.reader(io.StringIO(page)))
    kept = [place for place, name in enumerate(rows[0]) if name not in columns]
    text = io.StringIO()
    csv.writer(text).writerows([[row[place] for place in kept] for row in rows])
    return text.getvalue()


def of_details(page: str, *metrics: str) -> str:
    """The details page with these metrics alone."""
    rows = list(csv.reader(io.StringIO(page)))
    place = rows[0].index("Metric Name")
    text = io.StringIO()
    csv.writer(text).writerows([rows[0], *(row for row in rows[1:] if row[place] in metrics)])
    return text.getvalue()


NAMES = [name for name, _ in RAW]
WRONG = {
    "another table": (
        "a,b\n1,2\n",
        r"no heading with 'Kernel Name'; expected what `ncu --csv --page raw` .* found 'a,b'",
    ),
    "nothing": ("\n \n", "it is empty"),
    "a heading alone": (raw_page(()), "no kernels below"),
    "no duration": (
        without(raw_page(), NAMES[0]),
        r"no duration of any kernel.*expected .gpu__time.* or .*, found sm__",
    ),
    "no counters": (
        without(raw_page(), *NAMES[1:]),
        r"none of the metrics sm__throughput.* found gpu__time_duration.sum",
    ),
    "bytes per second alone": (
        of_details(details_page(), "Duration").replace("Duration,us", "Memory Throughput,Gbyte/s"),
        "none of the metrics",
    ),
    "an unknown unit": (
        raw_page().replace(',"ns",', ',"fortnight",'),
        "the unit of .* is .fortnight.; expected one of ns",
    ),
    "no units": (
        "".join(raw_page().splitlines(keepends=True)[0::2]),
        "is none .is the row of units below the heading missing",
    ),
    "a cut-off row": (
        raw_page()[:-40],
        r"row 4 below the heading ends after \d+ of 17 cells: the file is cut off",
    ),
    "a cut-off details page": (
        details_page()[: details_page().rindex("Gbyte")],
        "the file is cut off",
    ),
    "decimal commas without quotation marks": (
        raw_page(
            locale="de",
            cell=lambda text: (
                f'"{text}"' if not text.replace(",", "").replace(".", "").isdigit() else text
            ),
        ),
        "more|are these decimal commas without quotation marks",
    ),
    "decimal commas": (
        raw_page(CASTS[:1], locale="de"),
        (
            r"kernel 1 .*'2,50' is no finite number from 0 on with a decimal point; export it again"
            r" with LC_ALL=C"
        ),
    ),
    "no number": (
        raw_page().replace('"91.75"', '"much"'),
        r"'sm__throughput.* of kernel 3 \(ampere_sgemm.*'much' is no finite number",
    ),
    "two columns that differ": (
        raw_page().replace("lts__t_sector_hit_rate.pct", "l1tex__t_sector_hit_rate.pct"),
        "two values of 'l1tex__t_sector_hit_rate.pct' of kernel 1 that differ: '10.50' and '50.50'",
    ),
}


@pytest.mark.parametrize(("page", "message"), WRONG.values(), ids=WRONG)
def test_wrong_tables(page: str, message: str) -> None:
    """Each wrong table is an error that names what was found and what was expected."""
    with pytest.raises(TraceError, match=message):
        profile_of(read_ncu(page))


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1,234.5", 1234.5), ("12345", 12345), ("2.5e+03", 2500), ("158 (0: 158)", 158)],
)
def test_numbers(text: str, ns: float) -> None:
    """A time has a decimal point, with or without groups of thousands."""
    report = read_ncu(raw_page().replace('"1,234,567"', f'"{text}"'))
    assert report.kernels[2].seconds == pytest.approx(ns * 1e-9)


@pytest.mark.parametrize("text", ["12,5", "1,23,4", "1.234,5", "1'234.5", "12 %", "0x1f", "1_000"])
def test_no_numbers(text: str) -> None:
    """Numbers of other locales, and what is none, are refused and not read in another way."""
    with pytest.raises(
        TraceError,
        match="is no finite number from 0 on with a decimal point; export it again with LC_ALL=C",
    ):
        read_ncu(raw_page().replace('"1,234,567"', f'"{text}"'))


@pytest.mark.parametrize("text", ["n/a", ""])
def test_cells_without_a_number(text: str) -> None:
    """A counter that was not measured is left out of the means."""
    report = read_ncu(raw_page().replace('"91.75"', f'"{text}"'))
    assert "sm_throughput" not in report.kernels[2].counters
    assert report.kernels[2].counters["memory_throughput"] == 40.5


def test_three_weight_casts_are_not_the_arm() -> None:
    """Three weight casts read as three kernels: the means are stated to be theirs alone, and their
    share not to be known.
    """
    found = profile_of(read_ncu(raw_page([CASTS[0]] * 3)))
    lines = list(summary_lines(found, None))
    assert lines[0] == "ncu, forwards not known"
    assert (
        lines[1]
        == "3 kernels profiled under 1 name; what share of the arm's kernel time they take is not"
        " known"
    )
    assert lines[2].startswith(
        "means weighted by time (of these 3 kernels alone, not of the arm): sm throughput 2.5 %"
    )
    assert any("how many forwards the file holds is not known" in line for line in lines)
    assert found.profile.forwards == 1


def test_phases_by_ranges() -> None:
    """Kernels in ranges of prompts and of steps are profiles of their own; kernels in no range are
    left out.
    """
    ranges = ("breakeven:prefill", "breakeven:forward", "breakeven:forward", "breakeven:arm:1")
    launches = [
        (CASTS[0]._replace(name=f"kernel {place}"), f"a:{name}:none")
        for place, name in enumerate(ranges)
    ]
    first, *others = (raw_page([launch], nvtx=nvtx) for launch, nvtx in launches)
    found = ncu_profiles(
        read_ncu(first + "".join(page.splitlines(keepends=True)[2] for page in others)), 2
    )
    assert [
        (each.profile.phase, each.profile.forwards, each.profile.launches) for each in found
    ] == [("prefill", 1, 1), ("decode", 2, 1)]
    assert (found[1].kernels, found[1].kernels_in_file) == (2, 4)


def test_published_summary() -> None:
    """A summary per kernel stands for its launches: their number, the mean of their time, the means
    of their counters.
    """
    found = profile_of(read_ncu(SUMMARY))
    (kernel,) = found.profile.activities
    assert (kernel.name, kernel.count, kernel.seconds) == ("kernel_a", 2, pytest.approx(4e-6))
    assert kernel.counters == {"sm_throughput": 17, "memory_throughput": 20}
    assert (
        found.kernels,
        found.kernels_in_file,
        found.profile.launches,
        found.profile.forwards,
    ) == (2, 2, 2, 1)
    (halved,) = profile_of(read_ncu(SUMMARY), 2).profile.activities
    assert (halved.count, halved.seconds) == (1, pytest.approx(2e-6))


def test_published_summary_of_two_launch_shapes() -> None:
    """A kernel with two launch shapes has two summaries, which count by the time of all of their
    launches.
    """
    with pytest.raises(TraceError, match="no duration of any kernel"):
        read_ncu(SUMMARY_THOR)
    found = profile_of(read_ncu(SUMMARY_THOR + DURATIONS_THOR))
    (kernel,) = found.profile.activities
    assert (kernel.count, kernel.seconds) == (28, pytest.approx(14 * (20.2 + 2994) * 1e-6))
    assert kernel.counters["achieved_occupancy"] == pytest.approx(
        (20.2 * 74.92 + 2994 * 28.52) / (20.2 + 2994)
    )


WRONG_SUMMARIES = {
    "no average": (SUMMARY.replace('"Average"', '"Mean"'), "no 'Average'"),
    "launches in words": (
        SUMMARY.replace('"kernel_a","2"', '"kernel_a","two"'),
        "'Invocations' holds 'two'",
    ),
    "no launches": (SUMMARY.replace('"kernel_a","2"', '"kernel_a","0"'), "'Invocations' holds '0'"),
    "two values": (
        SUMMARY + SUMMARY.splitlines()[-1].replace('"2"', '"3"') + "\n",
        "two values of 'Duration' of kernel 1 that differ: '2' and '3'",
    ),
    "no kernels": (
        SUMMARY.replace('"Kernel Name",', "").replace('"kernel_a",', ""),
        "no heading with 'Kernel Name'.*--print-summary",
    ),
    "a time below zero": (
        SUMMARY.replace('"3","2"', '"3","-2"'),
        "'-2' is no finite number from 0 on",
    ),
}


@pytest.mark.parametrize(("page", "message"), WRONG_SUMMARIES.values(), ids=WRONG_SUMMARIES)
def test_wrong_summaries(page: str, message: str) -> None:
    """Each wrong summary is an error that names what was found."""
    with pytest.raises(TraceError, match=message):
        read_ncu(page)


@pytest.mark.parametrize("page", [raw_page(), details_page(), SUMMARY])
def test_ncu_rows_that_stand_there_twice(page: str) -> None:
    """A table that was written twice into one file gives the same kernels."""
    lines = page.splitlines(keepends=True)
    head = [
        place for place, line in enumerate(lines) if "Kernel Name" in line or line[:4] == '"","'
    ]
    again = page + "".join(lines[head[-1] + 1 :])
    assert len(again) > len(page)
    assert read_ncu(again) == read_ncu(page)


def test_covered_share() -> None:
    """Kernels count for the share of the arm's time that as many launches of their name take in a
    profile of all kernels.
    """
    cast = "void at::native::unrolled_elementwise_kernel<cast>(long)"
    whole = [
        Activities(name=name, activity="kernel", count=count, seconds=seconds)
        for name, count, seconds in (
            (cast, 10, 1),
            ("ampere_sgemm_128x64_tn", 4, 7),
            ("other", 1, 2),
        )
    ]
    whole.append(Activities(name="memcpy HtoD", activity="memcpy", count=1, seconds=90.0))
    casts = profile_of(read_ncu(raw_page(CASTS[:2]))).profile.activities
    assert covered_share(casts, whole) == pytest.approx(0.2 * 1.0 / 10)
    everything = profile_of(read_ncu(raw_page())).profile.activities
    assert covered_share(everything, whole) == pytest.approx((0.2 * 1.0 + 0.25 * 7.0) / 10)
    assert covered_share(casts, whole[1:]) is None
    assert covered_share(casts, []) is None


def test_function_names() -> None:
    """Names of both tools are compared without types, namespaces and arguments."""
    softmax = "softmax_warp_forward<float, (int)8>(float*, int)"
    for name, function in {
        f"void at::native::(anonymous namespace)::{softmax}": "softmax_warp_forward",
        "void cutlass::Kernel<cutlass::gemm::Gemm<float, 4>>(Params)": "Kernel",
        "ampere_sgemm_128x64_tn": "ampere_sgemm_128x64_tn",
    }.items():
        assert function_name(name) == function


def test_a_file_of_ncu_itself() -> None:
    """Three kernels of TopK in float16 as ncu 2025.3 wrote them on an H100, with the lines that it
    prints of itself and all the columns that no one asked for.
    """
    page = (Path(__file__).parents[1] / "fixtures" / "h100_ncu.csv").read_text(encoding="utf-8")
    report = read_ncu(page)
    assert report.missing == ()
    assert [function_name(each.name) for each in report.kernels] == [
        "implicit_convolve_sgemm",
        *["nvjet_sm90_hsh_8x64_64x16_4x1_v_bz_bias_TNN"] * 2,
    ]
    seconds = [each.seconds for each in report.kernels]
    assert seconds == pytest.approx([70.112e-6, 5.472e-6, 7.584e-6])
    mark = profile_of(report, forwards=1).mark
    assert mark == (("d3bc00559dab8b0f",), "arm", 1)
