"""The faults, by area. Each is one function that plants it in the process it is called in."""
