"""Profiles with rounds: what distinguishes an arm from its baseline, with intervals."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for name in ("baseline", "rounds"):
        op.add_column("profile_row", sa.Column(name, sa.Integer(), nullable=True))
    for name in ("speedup", "profiled_speedup"):
        for end in ("", "_low", "_high"):
            op.add_column("profile_row", sa.Column(f"{name}{end}", sa.Float(), nullable=True))
    for end in ("", "_low", "_high"):
        op.add_column("profile_time_row", sa.Column(f"change{end}", sa.Float(), nullable=True))
