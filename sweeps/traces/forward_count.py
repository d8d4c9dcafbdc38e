"""How many forwards a trace holds: by its ranges, by kernels that repeat, or as the user states it; they must agree."""

from typing import Literal, NamedTuple

from sweeps.number_format import count
from sweeps.traces.device_trace import FORWARD_RANGE, TraceError
from sweeps.traces.repeats import KernelRepeats

ForwardSource = Literal["ranges", "repeats", "given", "unknown"]


class ForwardCount(NamedTuple):
    """By how many forwards totals are divided, and how that is known."""

    forwards: int
    source: ForwardSource
    text: str


def decide_forwards(ranges: int, repeats: KernelRepeats | None, given: int | None) -> ForwardCount:
    """The number of forwards.

    ranges: ranges of a forward in the trace. repeats: what repeats among its kernels (of those inside the ranges, if any).
    given: `--forwards`. Raises `TraceError` if two of them disagree, or if none states the number.
    """
    if ranges:
        return _by_ranges(ranges, repeats, given)
    if repeats is not None and (repeats.complete or (given is not None and repeats.equal <= given <= repeats.passes)):
        return _by_repeats(repeats, given)
    if given is not None:
        return ForwardCount(given, "given", f"--forwards {given}")
    found = "its kernels do not repeat"
    if repeats is not None:
        found = f"{count(repeats.period, 'kernel')} repeat {repeats.equal} times, which may be parts of one forward"
    raise TraceError(f"it has no ranges {FORWARD_RANGE}, and {found}; state how many forwards it holds with --forwards K")


def _by_ranges(ranges: int, inside: KernelRepeats | None, given: int | None) -> ForwardCount:
    text = f"{count(ranges, 'range')} {FORWARD_RANGE}"
    if given not in (None, ranges):
        raise TraceError(f"--forwards {given} disagrees with the {text} in it; leave --forwards out, or name the right file")
    if inside is not None and inside.complete and inside.rest == 0 and inside.equal % ranges:
        raise TraceError(
            f"the {text} in it disagree with the kernels inside them, which repeat {inside.equal} times; "
            "record it again with one range around each forward"
        )
    return ForwardCount(ranges, "ranges", text)


def _by_repeats(repeats: KernelRepeats, given: int | None) -> ForwardCount:
    text = f"{count(repeats.period, 'kernel')} that repeat {repeats.equal} times"
    further = repeats.passes - repeats.equal
    if given is not None and not repeats.equal <= given <= repeats.passes:
        most = f" ({repeats.passes} times with passes that also run other kernels)" if further else ""
        raise TraceError(
            f"--forwards {given} disagrees with its kernels: {repeats.period} of them repeat {repeats.equal} times{most}; "
            "leave --forwards out, or record it again with the ranges of `python -m workers.run job.json --arm N --forwards K`"
        )
    if further:
        others = "1 pass runs other kernels too, and is" if further == 1 else f"{further} passes run other kernels too, and are"
        text += f" ({repeats.passes} passes, of which {others} left out)"
    return ForwardCount(repeats.equal, "repeats", text)
