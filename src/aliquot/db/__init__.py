"""The Store on SQLAlchemy: SQLite now, PostgreSQL later. Nothing outside this room sees a statement or a connection."""
