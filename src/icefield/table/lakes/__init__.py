"""Parts of the handle of a lake that concern many tables."""
