"""Commands on what to use: `advise`, with a confirmation on fresh pairs, and `export-policy`."""

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from orchestrator.commands.options import ANSWERED, UNANSWERED, Database, TableOrJson
from orchestrator.commands.run import run_sweep
from orchestrator.plan import planning
from orchestrator.plan.sites import local_sites, places_of
from orchestrator.plan.time_budget import comparison_ids
from orchestrator.text_table import table_lines
from store.errors import StoreError
from store.open.engine import Engine, connect_readonly, disposing
from store.read.advice.advice import (
    AdviceRequest,
    MethodFacts,
    RefusedError,
    advice_of,
    checked,
    command_line,
    condition_arms,
)
from store.read.advice.policy_file import policy_file
from store.read.advice.timed_arms import environment_facts, fresh_figures
from store.rows.location import database_option
from store.rows.placement import Place
from store.write.submission import newest_attempt
from sweeps.analysis.advice import RankedArm
from sweeps.analysis.labels import SPEEDUP, Conclusion, Finding, conclude
from sweeps.errors import UserError
from sweeps.geometry.model_families import code_name
from sweeps.language.confirmation import comparison_at, sweep_of
from sweeps.model.condition import Runtime
from sweeps.model.metrics import INTERVAL, timed_metrics
from sweeps.number_format import count
from sweeps.text.advice_text import (
    Advice,
    advice_dict,
    advice_notes,
    advice_sentence,
    advice_table,
    claim_sentence,
    doubt_sentence,
    environment_sentence,
    quality_sentence,
    runtime_sentence,
)
from sweeps.text.effects import effect_word
from workers.methods import all_methods, purpose
from workers.methods.arm_labels import params_label

MeasuredDevice = Annotated[
    Literal["cpu", "cuda"] | None,
    typer.Option("--device", help="Only what was measured on this class of device."),
]
MeasuredRuntime = Annotated[
    Runtime | None,
    typer.Option("--runtime", help="Only arms that ran with it."),
]
MeasuredData = Annotated[
    str | None,
    typer.Option(
        "--data", help="Only quality on this data set; default: on each that was measured."
    ),
]
MeasuredMetric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The time to rank by, such as ttft or tpot; default: the first of the kind.",
    ),
]
MaxDrop = Annotated[
    float | None,
    typer.Option(
        min=0,
        help=(
            "Only arms that lose at most this much, by the upper end of the interval: points of"
            " top-1, or bits per byte. An arm whose quality was not measured is then not advised."
        ),
    ),
]
_METHODS = MethodFacts(params_label, purpose)


def advise(
    *,
    db: Database = None,
    model: Annotated[str, typer.Option(help="The model, as sweeps name it.")],
    tokens: Annotated[
        int,
        typer.Option(
            min=1, help="Tokens of the unmodified model: patch tokens, or those of the prompt."
        ),
    ],
    batch: Annotated[int, typer.Option(min=1, help="Batch size.")],
    device: MeasuredDevice = None,
    runtime: MeasuredRuntime = None,
    data: MeasuredData = None,
    metric: MeasuredMetric = None,
    max_drop: MaxDrop = None,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="Mark the arms that no other surpasses in all that was measured."
        ),
    ] = False,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help=(
                "Measure the winner once more, on pairs that it was not chosen by, and print both."
            ),
        ),
    ] = False,
    form: TableOrJson = "table",
) -> None:
    """Print the advice; exit code 1 where what was measured does not answer the question."""
    _check_metric(metric)
    request = AdviceRequest(model, tokens, batch, device, runtime, data, metric, max_drop, pareto)
    with _opened(db) as engine:
        answered = [checked(engine, each) for each in advice_of(engine, request, _METHODS)]
        facts = environment_facts(engine, {each.environment for each in answered})
    confirmation = _confirmation(answered, db) if confirm else None
    if form == "json":
        own = {"confirmed": None if confirmation is None else confirmation.as_dict()}
        typer.echo(
            json.dumps([advice_dict(each) | own for each in answered], indent=1, allow_nan=False)
        )
    else:
        options = database_option(db)
        texts = []
        for each in answered:
            fresh = confirmation if each.leads else None
            about = environment_sentence(each, facts)
            texts.append("\n".join(_lines(each, request, about, fresh, options)))
        typer.echo("\n\n".join(texts))


def export_policy(
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="The policy to write, such as policy.json.")
    ],
    *,
    db: Database = None,
    model: Annotated[str | None, typer.Option(help="Only this model; default: all.")] = None,
    device: MeasuredDevice = None,
    runtime: MeasuredRuntime = None,
    data: MeasuredData = None,
    metric: MeasuredMetric = None,
    max_drop: MaxDrop = None,
) -> None:
    """Write the policy of what was measured; exit code 1 where nothing was. Raises `StoreError` for
    a wrong path.
    """
    _check_metric(metric)
    with _opened(db) as engine:
        conditions = condition_arms(
            engine, _METHODS, model=model, device=device, runtime=runtime, data=data, metric=metric
        )
        made = policy_file(engine, conditions, max_drop=max_drop, created=time.time())
    try:
        out.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{out} cannot be written: {error.strerror}; choose a folder that exists and is"
            " writable"
        ) from None
    typer.echo(
        f"{out}: {count(made.rules, 'rule')} (a condition and a batch each) with"
        f" {count(made.arms, 'arm')} to use; apply it with sweeps/analysis/policy.py"
    )
    for line in made.lines:
        typer.echo(line)
    raise typer.Exit(ANSWERED if made.rules else UNANSWERED)


def _check_metric(name: str | None) -> None:
    if name is not None and name not in timed_metrics():
        raise typer.BadParameter(
            f"{name!r} is no time that arms are compared by; known are"
            f" {', '.join(timed_metrics())}",
            param_hint="--metric",
        )


@contextlib.contextmanager
def _opened(db: str | None) -> Iterator[Engine]:
    """The store for reading; what it cannot answer is printed and ends the command."""
    try:
        with disposing(connect_readonly(db)) as engine:
            yield engine
    except RefusedError as error:
        typer.echo(f"breakeven: {error}", err=True)
        raise typer.Exit(UNANSWERED) from None


class Confirmation(NamedTuple):
    """A speed-up on fresh pairs."""

    found: Conclusion | None
    """`None` where the run did not measure it."""
    pairs: int
    comparison_id: str
    flags: str
    sweep: str

    def text(self, chosen: RankedArm, options: str) -> str:
        """Both figures in a sentence: what the arm was chosen by, and what it shows on fresh
        pairs.
        """
        first = f"{chosen.value:.3f}x [{chosen.low:.3f}, {chosen.high:.3f}]"
        if self.found is None:
            return (
                f"Confirmation: chosen by {first}, and not measured again; see: breakeven report"
                f" {self.sweep}{options}"
            )
        flags = f", flagged {self.flags.replace(',', ', ')}" if self.flags else ""
        numbers = (
            f"on {self.pairs} fresh pairs {self.found.numbers} ({INTERVAL}):"
            f" {effect_word(self.found)}{flags}"
        )
        held = "confirmed" if self.found.finding is Finding.GAIN else "NOT confirmed"
        return f"Confirmation: {held}; chosen by {first}, {numbers}."

    def as_dict(self) -> dict[str, Any]:
        found = self.found
        return {
            "comparison_id": self.comparison_id,
            "sweep": self.sweep,
            "pairs": self.pairs,
            "flags": self.flags,
            "speedup": found and found.value,
            "low": found and found.low,
            "high": found and found.high,
            "word": "not measured" if found is None else effect_word(found),
        }


def _lines(
    advice: Advice,
    request: AdviceRequest,
    environment: str,
    confirmation: Confirmation | None,
    options: str,
) -> Iterator[str]:
    yield advice_sentence(advice)
    yield f"For {advice.title}."
    asked = request if advice.leads else request._replace(runtime=advice.time.runtime)
    again = command_line(("advise", "--confirm"), asked) + options
    about = runtime_sentence(advice), environment, claim_sentence(advice)
    yield from filter(None, (*about, doubt_sentence(advice, again), quality_sentence(advice)))
    if confirmation is not None:
        yield confirmation.text(advice.ranking.winner, options)
    yield ""
    yield from table_lines(*advice_table(advice))
    yield ""
    yield from advice_notes(advice)


def _confirmation(answered: Sequence[Advice], db: str | None) -> Confirmation | None:
    """The winner of the first advice, measured once more in a fresh process with a generated sweep;
    `None` where there is nothing to measure.

    What the run prints goes to stderr. Raises `UserError` where this machine is not the one that
    the advice rests on, and where no sweep file requests the same question.
    """
    only, *others = [each for each in answered if each.leads]
    if others:
        titles = "; ".join(each.title for each in (only, *others))
        raise UserError(
            f"--confirm measures one condition, and {len(others) + 1} match: {titles}; choose by"
            " --device or --runtime"
        )
    if (winner := only.winner) is None:
        typer.echo("nothing to confirm: the unmodified model is advised", err=True)
        return None
    last = winner.rows[-1]
    comparison = comparison_at(winner.comparison, int(last.tokens), only.tokens)
    device, place = comparison.condition.device, Place(last.environment, last.host)
    if place not in places_of(local_sites()):
        raise UserError(
            f"--confirm: this advice rests on host {last.host}, environment {last.environment[:8]},"
            " and this machine is another one or has changed; confirm it there, or measure the"
            " sweep here first"
        )
    if code_name(comparison.condition.model) is not None:
        raise UserError(
            f"--confirm: {comparison.condition.model} lies beside its sweep; run that with"
            " --remeasure"
        )
    name = f"confirm-{comparison.question_id}"
    unknown = [
        step.method
        for arm in (comparison.arm, comparison.baseline)
        for step in arm.stack
        if step.method not in all_methods()
    ]
    if unknown:
        raise UserError(f"--confirm: the method {unknown[0]} is not installed here")
    text = sweep_of(
        [comparison],
        name,
        f"Is {winner.label} as fast on fresh pairs as when it was chosen?",
        all_methods(),
    )
    expansion = planning.load_sweep(f"{name}.yaml", auto=device, text=text)
    if [each.question_id for each in expansion.comparisons] != [comparison.question_id]:
        raise UserError(
            f"--confirm: no sweep file requests the question of {last.comparison_id} again; run its"
            " own sweep with --remeasure"
        )
    (comparison_id,) = comparison_ids(expansion.jobs)
    with _opened(db) as engine:
        since = newest_attempt(engine)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        file = Path(folder) / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        code = run_sweep(file, db=db, ray_address=None, device=device, again="all")
    if code != ANSWERED:
        typer.echo(f"the confirmation ended with exit code {code}", err=True)
    with _opened(db) as engine:
        figures = fresh_figures(
            engine, comparison_id, comparison.kind, place, since=since, metric=only.metric
        )
    if figures is None:
        return Confirmation(None, 0, comparison_id, "", name)
    bounds = (figures["effect"], figures["effect_low"], figures["effect_high"])
    found = conclude(SPEEDUP, *bounds, verdict=figures["verdict"], floor=figures["floor"])
    return Confirmation(found, int(figures["n"]), comparison_id, figures["flags"], name)
