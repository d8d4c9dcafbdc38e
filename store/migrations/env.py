"""Alembic's entry: runs the migrations on the connection and inside the transaction that
`store.open.migration` hands over.
"""

from alembic import context

from store.schema.tables import model_metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=model_metadata(),
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
