"""Effects in words: what is concluded about one in a cell and in a phrase, and a stack beside its
parts.
"""

from collections.abc import Mapping

from sweeps.analysis.labels import GAINS, LOSSES, PROBABLE, SMALL, Conclusion, Finding, Stack
from sweeps.number_format import count


def effect_word(found: Conclusion) -> str:
    """For a table: `faster`, `probably slower`, `same`, `within floor`, `unclear`, `too few pairs`,
    `quarantined` …
    """
    if found.finding in SMALL:
        return "within floor"
    if found.finding is Finding.INSUFFICIENT:
        return "too few pairs"
    return f"{_sure(found)}{_side(found) or found.finding.value}"


def effect_phrase(found: Conclusion) -> str:
    """The finding with its numbers: `probably worse by 0.0070 [0.0042, 0.0098] bits per byte`."""
    effect, numbers = found.effect, found.numbers
    unit = f" {effect.unit}" if effect.unit else ""
    floor = f"{100 * found.floor:.3g} %" if effect.ratio else f"{found.floor:.3g}"
    if (side := _side(found)) is not None:
        small = f", within the floor of {floor}{unit}" if found.finding in SMALL else ""
        if effect.ratio:
            return f"{_sure(found)}{side}: {numbers}{small}"
        # the amount alone: its sign is in the words
        low, high = sorted((abs(found.low or 0.0), abs(found.high or 0.0)))
        amount = found.written(abs(found.value or 0.0), low, high)
        return f"{_sure(found)}{side} by {amount}{unit}{small}"
    return {
        Finding.SAME: f"the same within {floor}{unit}: {numbers}",
        Finding.UNCLEAR: f"unclear: {numbers}{unit}",
        Finding.NO_INTERVAL: f"{numbers}{unit}, too few pairs for an interval",
        Finding.INSUFFICIENT: (
            "measured by too few pairs" + ("" if found.pairs is None else f": {numbers}")
        ),
        Finding.QUARANTINED: f"quarantined, measured on a slowed machine alone: {numbers}{unit}",
        Finding.QUEUED: "queued, not measured yet",
        Finding.FAILED: f"failed ({found.reason})" if found.reason else "failed",
        Finding.NOT_MEASURED: "requested, but not measured",
    }.get(found.finding, "not requested")


def losses_headline(found: Mapping[str, Conclusion], what: str) -> str:
    """How many arms lose, and which of them the most, in about twelve words: `2 of 4 arms lose
    top-1, topk keep_rate=0.2 most: 29.15 points`.
    """
    worse = {
        name: each for name, each in found.items() if each.finding in LOSSES - {Finding.SMALL_LOSS}
    }
    arms = count(len(found), "arm")
    if not worse:
        return f"None of {arms} is shown to lose {what}"
    name, most = max(worse.items(), key=lambda item: item[1].value or 0.0)
    number = f"{most.written(most.value, None, None)} {most.effect.unit}".rstrip()
    verb = "loses" if len(worse) == 1 else "lose"
    return f"{len(worse)} of {arms} {verb} {what}, {name} most: {number}"


def _sure(found: Conclusion) -> str:
    return "probably " if found.finding in PROBABLE else ""


def _side(found: Conclusion) -> str | None:
    if found.finding in GAINS:
        return found.effect.gain
    return found.effect.loss if found.finding in LOSSES else None


def stack_text(stack: Stack) -> str:
    """Parts of a stack, all together and the product of the parts, as the rest of a sentence."""
    clauses = [
        f"{part.label} was not measured alone"
        if part.speedup is None
        else f"{part.label} alone {part.speedup.numbers}"
        for part in stack.parts
    ]
    end = ""
    if stack.product is not None:
        end = f"; the product of the parts is {stack.product.numbers}"
    elif all(part.speedup is not None for part in stack.parts):
        end = "; no product of the parts: not every part has enough pairs"
    return f"{'; '.join(clauses)}; all together {stack.together.numbers}{end}"
