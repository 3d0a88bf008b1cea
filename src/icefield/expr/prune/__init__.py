"""What statistics and partition values say about a filter: files to skip, and the residual of the others."""
