"""Names and shapes of other libraries, for programs that move here step by step."""
