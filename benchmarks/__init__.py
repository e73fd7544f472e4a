"""What signoff costs, measured beside what others cost."""
