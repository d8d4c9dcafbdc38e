"""Protocol: how precisely a job is to measure."""

from pydantic import Field, model_validator

from sweeps.model.identity import FrozenModel


class Protocol(FrozenModel):
    """How precisely to measure; part of no identity. Times in seconds."""

    pairs_min: int = Field(default=30, ge=2)
    pairs_max: int = Field(default=300, ge=2)
    half_width: float = Field(default=0.015, gt=0, lt=1)
    """Stop once every ratio's interval is at most this wide to each side, as a share of the ratio,
    by the errors within a process. What differs between visits is left out here."""
    budget_s: float = Field(default=10.0, gt=0)
    """Stop timing after this long, warm-up excluded; with fewer than `pairs_min` pairs the answer
    is `insufficient`."""
    timeout_s: float = Field(default=300.0, gt=0)
    """The job is killed after this long, not counting `compile_timeout_s`."""
    compile_timeout_s: float = Field(default=900.0, gt=0)
    """An arm with runtime `compile` may take this long for its first call, which is when it is
    compiled."""
    rounds: int = Field(default=1, ge=1)
    """Repetitions of the whole job, each in a fresh process when more than one."""
    passes: int = Field(default=1, ge=1)
    """Visits to the job, spread over the sweep, each with models copied anew; pairs and budget are
    those of one visit."""
    images: int | None = Field(default=None, ge=1)
    """Accuracy jobs: evaluate this many images (evenly spread over the data); `None` for all."""
    characters: int | None = Field(default=None, ge=1)
    """Quality jobs: read this many characters of the held-out text; `None` for all of it."""
    tasks: tuple[str, ...] | None = None
    """Quality jobs: answer these tasks of lm-eval besides, each a name or the path of a YAML
    file."""
    documents: int | None = Field(default=None, ge=1)
    """Quality jobs: answer this many documents of each task (evenly spread over them); `None` for
    all."""

    @model_validator(mode="after")
    def _ordered(self) -> "Protocol":
        if self.pairs_min > self.pairs_max:
            raise ValueError(
                f"pairs: min is {self.pairs_min}, above max, which is {self.pairs_max}"
            )
        return self

    @property
    def turns(self) -> int:
        """How often the job is executed: as rounds or as passes."""
        return max(self.rounds, self.passes)

    def satisfies(self, requested: "Protocol") -> bool:
        """Whether an answer that stopped under this protocol without reaching its width need not be
        tried again for `requested`.
        """
        return (
            self.pairs_min >= requested.pairs_min
            and self.pairs_max >= requested.pairs_max
            and self.half_width <= requested.half_width
            and self.budget_s >= requested.budget_s
            and _as_many(self.images, requested.images)
            and _as_many(self.characters, requested.characters)
            and set(requested.tasks or ()) <= set(self.tasks or ())
            and (not requested.tasks or _as_many(self.documents, requested.documents))
        )


def _as_many(made: int | None, requested: int | None) -> bool:
    """Whether `made` is no less than `requested`; `None` is all there is."""
    return made is None or (requested is not None and made >= requested)
