"""The command line: one file a verb, each a thin shell over a plain function that tests call without it.

``streams`` and ``mergefile`` are light on purpose (nothing beyond ``os`` and ``sys``): the fast path of
``mergepub.__main__`` runs them before click is imported. Importing this package imports nothing.
"""
