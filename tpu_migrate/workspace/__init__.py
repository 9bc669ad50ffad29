"""The repository on disk: which files there are, how one is replaced, and how a run is taken back."""
