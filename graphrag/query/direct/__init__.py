"""OpenAI-compatible services, asked without a client in between: ``type: openai_direct``."""
