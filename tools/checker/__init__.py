"""The checker of certificates, which shares no code with the package that it is installed in: ``__main__``."""
