"""Simulation: worlds and, later, scenarios and faults."""
