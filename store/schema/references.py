"""Table of published measurements: kept apart from what is measured, so that no ratio, curve or
break-even can hold one.
"""

from sqlmodel import Field, SQLModel

from store.schema.planned import finite_numbers, one_of


class ReferenceRow(SQLModel, table=True):
    """One row of a published table, with the source of the table."""

    __tablename__ = "reference_row"
    __table_args__ = (
        one_of("source", ("published",)),
        one_of("latency_unit", ("per_batch", "per_image")),
        *finite_numbers(
            "batch_size latency_ms throughput gmacs_baseline gmacs kernel_ms speedup"
            " speedup_stated",
            "> 0",
        ),
        *finite_numbers("tokens tokens_final kernels forwards images", ">= 0"),
        *finite_numbers("top1 top1_baseline perplexity keep_rate r sparsity"),
    )

    reference: str = Field(primary_key=True)
    """Name of the set: that of its file."""
    entry: int = Field(primary_key=True)
    """Place in the table of the source, from 1."""
    environment: str
    """`published: ` and the title; no row of the table `environment`."""
    source: str
    title: str
    owner: str
    year: int | None
    place: str
    """Table, section or file of the source."""
    url: str | None
    device_name: str | None
    software: str | None
    counter: str | None
    """What counted the MACs."""
    tuned: bool | None
    """Whether the model was trained or tuned with the method."""
    label: str
    is_baseline: bool
    method: str | None
    model: str | None
    setting: str | None
    image_size: int | None
    tokens: int | None
    tokens_final: int | None
    batch_size: int | None
    keep_rate: float | None
    r: float | None
    sparsity: float | None
    latency_ms: float | None
    latency_unit: str | None
    """What `latency_ms` is the time of, where it is stated."""
    throughput: float | None
    gmacs_baseline: float | None
    gmacs: float | None
    speedup: float | None
    """Baseline over arm by the times of the table, else as stated."""
    speedup_stated: float | None
    kernel_ms: float | None
    kernels: int | None
    forwards: int | None
    top1_baseline: float | None
    top1: float | None
    images: int | None
    perplexity: float | None
    counters: str
    """Hardware counters, as JSON."""
    note: str | None
    digest: str
    """Of the whole set: importing it twice changes nothing."""
    payload: str
    """The row, as canonical JSON."""
    set_payload: str
    """The set without its rows, as canonical JSON."""
