"""The plots of the docs: one file for each family of mechanisms, and one for the first page, drawn from the library's
own figures.

python -m bench.plots [name ...]
"""
