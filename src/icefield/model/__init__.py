"""What a table is: names, specs, orders, snapshots, metadata, and changes to them as data. Pure."""
