"""Is the schema on the server the one that the migrations made?

Every table, column, constraint, index, function, trigger, rule and right is one line of text, the same on every version
of the server; a fresh ledger gives the lines in migrations/postgres_made.txt. Whoever turned a trigger off, changed a
function or granted more than was granted shows up as a line that is missing, or as one that should not be there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString

from .schema import FOLDER

# Rights are told by what can be done with them: reading is left to the owner. The owner goes by that word, whatever the
# role is called. A right to a column counts as one to the table, with the column's name.
LINES: LiteralString = """
WITH home AS (SELECT oid, nspowner, nspacl FROM pg_catalog.pg_namespace WHERE nspname = 'sfumato'),
tables AS (
    SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relowner, c.relacl
    FROM pg_catalog.pg_class c JOIN home ON c.relnamespace = home.oid WHERE c.relkind NOT IN ('i', 'I', 't')
),
functions AS (
    SELECT p.* FROM pg_catalog.pg_proc p JOIN home ON p.pronamespace = home.oid
),
rights AS (
    SELECT 'schema' AS what, a.grantee, a.privilege_type, nspowner AS owner
    FROM home, pg_catalog.aclexplode(coalesce(nspacl, pg_catalog.acldefault('n', nspowner))) a
    UNION ALL
    SELECT 'table ' || relname, a.grantee, a.privilege_type, relowner
    FROM tables, pg_catalog.aclexplode(coalesce(relacl, pg_catalog.acldefault('r', relowner))) a
    UNION ALL
    SELECT 'column ' || relname || '.' || attname, a.grantee, a.privilege_type, relowner
    FROM tables JOIN pg_catalog.pg_attribute ON attrelid = tables.oid, pg_catalog.aclexplode(attacl) a
    UNION ALL
    SELECT 'function ' || proname, a.grantee, a.privilege_type, proowner
    FROM functions, pg_catalog.aclexplode(coalesce(proacl, pg_catalog.acldefault('f', proowner))) a
)
SELECT 'table ' || relname || ': kind ' || relkind::text || relpersistence::text
       || CASE WHEN relrowsecurity THEN ' rows hidden' ELSE '' END FROM tables
UNION ALL
SELECT 'column ' || relname || '.' || attname || ': ' || pg_catalog.format_type(atttypid, atttypmod)
       || CASE WHEN attnotnull THEN ' not null' ELSE '' END
       || coalesce(' default ' || lower(pg_catalog.pg_get_expr(adbin, adrelid)), '')
FROM tables JOIN pg_catalog.pg_attribute ON attrelid = tables.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_catalog.pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE relkind = 'r'
UNION ALL
SELECT 'constraint ' || relname || '.' || conname || ': ' || pg_catalog.pg_get_constraintdef(k.oid)
FROM tables JOIN pg_catalog.pg_constraint k ON conrelid = tables.oid WHERE contype <> 'n'
UNION ALL
SELECT 'index ' || i.relname || ': ' || pg_catalog.pg_get_indexdef(i.oid)
       || CASE WHEN indisvalid THEN '' ELSE ' broken' END
FROM tables JOIN pg_catalog.pg_index ON indrelid = tables.oid JOIN pg_catalog.pg_class i ON i.oid = indexrelid
WHERE tables.relkind = 'r'
UNION ALL
SELECT 'function ' || proname || '(' || pg_catalog.pg_get_function_identity_arguments(functions.oid) || '): '
       || lanname || ' ' || prosecdef::text || ' ' || provolatile::text || ' '
       || coalesce(pg_catalog.array_to_string(proconfig, ';'), '') || ' '
       || pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(prosrc, 'UTF8')), 'hex')
FROM functions JOIN pg_catalog.pg_language l ON l.oid = prolang
UNION ALL
SELECT 'trigger ' || relname || '.' || tgname || ': ' || tgenabled::text || ' ' || tgtype::text || ' '
       || tgfoid::pg_catalog.regproc::text || ' ' || pg_catalog.cardinality(tgattr::int2[])::text
       || ' ' || (tgqual IS NULL)::text
FROM tables JOIN pg_catalog.pg_trigger ON tgrelid = tables.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'rule ' || relname || '.' || rulename FROM tables JOIN pg_catalog.pg_rewrite ON ev_class = tables.oid
UNION ALL
SELECT 'policy ' || relname || '.' || polname FROM tables JOIN pg_catalog.pg_policy ON polrelid = tables.oid
UNION ALL
SELECT 'inheritance ' || relname FROM tables JOIN pg_catalog.pg_inherits ON tables.oid IN (inhrelid, inhparent)
UNION ALL
SELECT 'setting ' || unnest FROM pg_catalog.pg_db_role_setting, unnest(setconfig)
WHERE unnest LIKE 'session_replication_role=%' AND unnest <> 'session_replication_role=origin'
      AND setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
UNION ALL
SELECT 'right ' || what || ': ' || privilege_type || ' to '
       || CASE grantee WHEN 0 THEN 'everybody' WHEN owner THEN 'owner'
            ELSE pg_catalog.pg_get_userbyid(grantee)::text END
FROM rights WHERE privilege_type NOT IN ('SELECT', 'USAGE', 'MAINTAIN', 'REFERENCES')
"""

# One statement, so that one snapshot sees both.
HEAD: LiteralString = """
SELECT (SELECT count(*) FROM sfumato.head) = 1 AND head.number = coalesce(last.number, 0)
       AND head.hash = coalesce(last.hash, pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex'))
FROM sfumato.head LEFT JOIN LATERAL (SELECT number, hash FROM sfumato.entries ORDER BY number DESC LIMIT 1) last ON true
"""


def difference(found: Iterable[str]) -> str | None:
    """The first line that is missing or should not be there, in words; None if there is neither."""
    odd = sorted(set(found) ^ set(_made()))
    if not odd:
        return None
    name, _, rest = odd[0].partition(": ")
    return f"the database is not as the ledger made it: look at the {name}" + (
        f", {rest}" if name.startswith("right ") else ""
    )


def _made() -> list[str]:
    return (FOLDER / "postgres_made.txt").read_text(encoding="utf-8").splitlines()
