"""What removes files: expiry, orphan files, dropped tables; marks, the sweep and its audit."""
