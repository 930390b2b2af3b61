"""What is shown to the model that answers, and what it says."""
