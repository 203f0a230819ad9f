SELECT COUNT(*) AS "a""b" FROM "visits" WHERE drug = 'it''s \ %' -- ' 
