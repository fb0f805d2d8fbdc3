"""harnessctl: compile, run, evolve and train over the harness of a tool-using agent."""

__version__ = "0.1.0"
