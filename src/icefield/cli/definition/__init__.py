"""Commands that change what tables and namespaces are: columns, layout, properties, names."""
