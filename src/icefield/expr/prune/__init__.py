"""Evaluate filters on statistics and partition values: the files to skip, and the residuals of the others."""
