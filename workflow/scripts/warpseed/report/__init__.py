"""Tables, figures and the page that a run ends in.

`tables` turns records into times and speedups, `figures` draws them, `page` puts everything on one
self-contained page. pandas and matplotlib are imported by those modules, so nothing is imported here.
"""

__all__: list[str] = []
