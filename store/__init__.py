"""Store: tables, migrations, the one writer, read-only queries and the public SQL views."""
