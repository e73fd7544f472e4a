"""The shell tool. It runs commands as argument lists without a shell, or in a shell if a person approved them."""
