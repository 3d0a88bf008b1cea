"""The data model of tables and views: names, specs, orders, snapshots, metadata, and updates of them. No I/O."""
