__version__ = "0.1.0"  # CHANGELOG.md says what is in it
# The date of the last change of the API that a client must know: docs/api-versions.md.
API_VERSION = "2026-11-26"
