"""Conversions between privacy notions: each reads ``<target>_from_<source>`` and says what it guarantees."""
