"""The catalog in a SQL database: SQLite and PostgreSQL, in the tables of Iceberg's JDBC catalog."""
