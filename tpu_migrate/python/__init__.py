"""Python source: what names mean, which rules match, and the edits that follow."""
