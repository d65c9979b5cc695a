"""Quantities of fastpriv beside the packages and lines that also compute them: the work of ``fastpriv bench``.

``tasks`` says what is compared, ``divergences``, ``accounting``, ``capacities`` and ``posteriors`` have the tasks of
their subject and the lines that one would write for them without fastpriv, ``accountants`` what other accountants are
asked, ``measure`` times, memory and the limits of the machine, ``history`` the runs in a file; ``program`` runs all.

It is installed as ``fastpriv/benches``, and imports fastpriv by its public names.
"""
