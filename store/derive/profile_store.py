"""Profiles: how they are stored, and which walls of their phases stand beside each other."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, TableClause

from store.derive.payload_store import Figures, Load, PayloadStore, StoredPair, trusted_pairs
from store.rows.profiles import load_profiles, profile_rows
from store.schema.tables import PROFILE
from sweeps.model.identity import digest_of
from sweeps.model.metrics import METRICS
from sweeps.model.outcome import Outcome
from sweeps.model.profile import ArmProfile

_WALL = "_wall"
"""The metrics of a profile job are `PHASE_wall`."""
_Profiles = tuple[ArmProfile, ...]


class ProfileStore(PayloadStore[_Profiles]):
    """Profiles of the arms, of which the newest attempt counts: they explain times and measure
    none, so that nothing is pooled.
    """

    analysis_version = 1
    table, size = PROFILE, "forwards"

    def read(self, outcome: Outcome) -> _Profiles | None:
        return outcome.profiles

    def rows(self, outcome: Outcome) -> list[tuple[TableClause, dict[str, Any]]]:
        if not outcome.profiles:
            return []
        origin = digest_of(outcome.model_dump_json())
        return [
            row
            for profile in outcome.profiles
            for row in profile_rows(profile, origin, recorded_at=outcome.ended_at)
        ]

    def load(self, connection: Connection, attempt: int) -> _Profiles:
        return load_profiles(connection, attempt)

    def missing(self, data: _Profiles | None, arm: int) -> str | None:
        seen = {profile.phase for profile in data or () if profile.arm == arm}
        lacking = [name for name in self.kind.metrics if name.removesuffix(_WALL) not in seen]
        return f"no profile of {lacking[0].removesuffix(_WALL)} and no failure" if lacking else None

    def used(self, pairs: Sequence[StoredPair]) -> list[StoredPair]:
        return trusted_pairs(pairs)[-1:]

    def compare(self, used: Sequence[StoredPair], load: Load[_Profiles]) -> Figures:
        (row,) = used
        walls = {(profile.arm, profile.phase): profile.wall_s for profile in load(row.attempt)}
        for name in self.kind.metrics:
            sides = {
                side: _wall_ms(walls, getattr(row, side), name) for side in ("baseline", "arm")
            }
            yield (
                METRICS[name],
                {"baseline_value": sides["baseline"], "arm_value": sides["arm"], "n": row.size},
            )


def _wall_ms(walls: dict[Any, float | None], arm: int, metric: str) -> float | None:
    seconds = walls.get((arm, metric.removesuffix(_WALL)))
    return None if seconds is None else 1e3 * seconds
