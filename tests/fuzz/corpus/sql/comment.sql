-- sfumato: epsilon=1, delta=1e-6, rows=3, keys=2
SELECT SUM(CASE WHEN ok THEN days ELSE 0 END) AS s FROM visits