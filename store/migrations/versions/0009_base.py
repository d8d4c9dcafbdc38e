"""The first schema of this chain: new stores are created from the models, older ones are rebuilt by `former_schemas.py`."""

revision = "0009"
down_revision = None


def upgrade() -> None:
    pass
