"""The first schema: its tables are created from the models, and later revisions change them."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    pass
