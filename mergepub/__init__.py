"""mergepub: publish documents by compare-and-swap, merge what others published in between, never lose an edit."""
