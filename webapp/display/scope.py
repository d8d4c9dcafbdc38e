"""What a page is about: a sweep, a metric, the conditions held fixed, and the arms that were
chosen.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Scope(NamedTuple):
    """A choice that every page with common filters shows; made by
    `webapp.widgets.filters.choose_scope`.
    """

    sweep: str
    metric: str
    """A metric of the view `speedup`."""
    fixed: Mapping[str, Any]
    """One value for each of `store.read.queries.PANEL_COLUMNS` but those of the facet; `None` where
    the rows have no value."""
    facet: str | None
    """`batch_size`, `dtype`, `runtime` or `device_name`: there is a panel for each of its values.
    `None`: one panel."""
    chosen: Mapping[str, tuple[str, ...]]
    """Values of `store.read.queries.ARM_COLUMNS` that arms may have; an empty tuple: all."""

    @property
    def conditions(self) -> Mapping[str, Any]:
        """The fixed values and the metric."""
        return {**self.fixed, "metric": self.metric}

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for equal scopes, and hashable."""
        return (
            self.sweep,
            self.metric,
            tuple(self.fixed.items()),
            self.facet,
            tuple(self.chosen.items()),
        )
