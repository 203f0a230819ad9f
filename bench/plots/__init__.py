"""The plots of the docs: one file for each family of mechanisms, drawn from the library's own figures.

python -m bench.plots [family ...]
"""
