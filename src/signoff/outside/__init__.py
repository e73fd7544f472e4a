"""Calls that agents of other programs make: judged, asked about and written down here, carried out there."""
