"""Tables, figures and the page that a run ends in.

`measurements` turns records into times and speedups; `tables`, `charts` and `curves` are general, `blocks`, `printed`
and `parts` are what a section of the `page` is made of. Each system has one module with its tables, its figures and its
section, named in `systems`. pandas, matplotlib and Jinja2 are imported when something is made.
"""

__all__: list[str] = []
