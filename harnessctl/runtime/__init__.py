"""Runtime: carries a request through a bundle."""
