"""Why a scan reads a file or does not, for people and programs."""
