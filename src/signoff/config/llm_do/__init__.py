"""Import projects of llm-do (`signoff import llm-do`): read their files, write signoff's. None of their code runs."""
