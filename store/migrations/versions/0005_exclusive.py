"""Exclusive: what a timing job has to itself, beside the other fields of the condition."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("comparison", "job", "spoken_arm"):
        op.add_column(table, sa.Column("exclusive", sa.String(), nullable=True))
