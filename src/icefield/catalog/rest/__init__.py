"""The catalog behind a server of Iceberg's REST protocol."""
