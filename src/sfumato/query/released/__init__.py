"""Released numbers: figures with error bars, expressions over them, and the answer."""
