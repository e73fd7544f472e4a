"""The meaning of an approval, as values and pure functions: no clock, file, network, environment or await."""
