"""SQL above releases: private aggregates below, ordinary SQL on what they released above."""
