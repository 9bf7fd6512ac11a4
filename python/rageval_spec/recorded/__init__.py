"""What programs recorded, wherever it was written: questions, answers, documents, messages, steps."""
