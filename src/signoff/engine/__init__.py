"""Where runs go on: finds those that have news, executes each until it ends or waits, and puts it down."""
