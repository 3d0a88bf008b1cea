"""What one version changed, proposed again on another: cherry-picks, reverts, and branches that have diverged."""
