"""Names and signatures of other libraries, for programs that migrate to signoff step by step."""
