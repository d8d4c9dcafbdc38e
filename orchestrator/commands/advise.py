"""Command `advise`: which arm to use for a number of tokens and a batch size, or the unmodified
model, and the rows that show it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Literal

import typer

from orchestrator.commands.confirm import Confirmation, confirm
from orchestrator.commands.run import ANSWERED, UNANSWERED
from orchestrator.text_table import table_lines
from store.open.engine import connect_readonly
from store.read.advice.advice import AdviceRequest, RefusedError, advice_of, checked, command_line
from store.read.advice.condition_arms import MethodFacts
from sweeps.errors import UserError
from sweeps.text.advice_text import (
    Advice,
    advice_dict,
    advice_notes,
    advice_sentence,
    advice_table,
    claim_sentence,
    doubt_sentence,
    quality_sentence,
)
from workers.methods import purpose
from workers.methods.arm_labels import params_label


def advise_model(
    db: str | None, request: AdviceRequest, form: Literal["table", "json"], *, confirmed: bool
) -> int:
    """Print the advice, as text or as JSON; `confirmed` measures the winner again.

    Returns the exit code: 1 where what was measured does not answer the question.
    """
    engine = connect_readonly(db)
    try:
        answered = advice_of(engine, request, MethodFacts(params_label, purpose))
        answered = [checked(engine, each) for each in answered]
    except RefusedError as error:
        typer.echo(f"breakeven: {error}", err=True)
        return UNANSWERED
    finally:
        engine.dispose()
    confirmation = _confirmation(answered, db) if confirmed else None
    if form == "json":
        own = {"confirmed": None if confirmation is None else confirmation.as_dict()}
        typer.echo(
            json.dumps([advice_dict(each) | own for each in answered], indent=1, allow_nan=False)
        )
    else:
        typer.echo("\n\n".join("\n".join(_lines(each, request, confirmation)) for each in answered))
    return ANSWERED


def _confirmation(answered: Sequence[Advice], db: str | None) -> Confirmation | None:
    """The winner of the only advice, measured once more; `None` where there is nothing to
    measure.
    """
    if len(answered) > 1:
        titles = "; ".join(each.title for each in answered)
        raise UserError(
            f"--confirm measures one condition, and {len(answered)} match: {titles}; choose by"
            " --device or --runtime"
        )
    (only,) = answered
    if only.winner is None:
        typer.echo("nothing to confirm: the unmodified model is advised", err=True)
        return None
    return confirm(only.winner, only.tokens, only.metric, db)


def _lines(
    advice: Advice, request: AdviceRequest, confirmation: Confirmation | None
) -> Iterator[str]:
    yield advice_sentence(advice)
    yield f"For {advice.title}."
    again = command_line(("advise", "--confirm"), request)
    yield from filter(
        None, (claim_sentence(advice), doubt_sentence(advice, again), quality_sentence(advice))
    )
    if confirmation is not None:
        yield confirmation.text(advice.ranking.winner)
    yield ""
    yield from table_lines(*advice_table(advice))
    yield ""
    yield from advice_notes(advice)
