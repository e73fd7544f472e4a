"""What people may do about requests, grants, each other and the switch, for every face: commands, API, channels."""
