"""Queues in which the writers of one table wait for the last step of a commit. Best effort: the swap decides."""
