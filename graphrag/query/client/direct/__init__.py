"""OpenAI-compatible services, asked without a client in between."""
