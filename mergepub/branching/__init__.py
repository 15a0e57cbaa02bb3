"""Several writers without interleaving: fast-forward or an immutable sibling, and explicit decisions about siblings.

``sending`` publishes to branches, ``kinds`` keeps logs of events valid, ``looking`` shows what there is, ``deciding``
decides. They return values and print nothing; what is stored, and when, is the store's business.
"""
