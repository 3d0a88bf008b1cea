"""icefield doctor: what works on this machine and in this lake, and how to mend what does not."""
