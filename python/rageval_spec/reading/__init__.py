"""Files become checked tables: questions, answers and labels."""
