"""Tool calls of agents in other programs: decided and recorded here, executed there."""
