"""What the conditions of a query say about its tables, as filters for planning."""
