"""Systems of other libraries as methods of ``graphrag eval``."""
