"""What a connection to MariaDB is set to before anything is asked, so that neither the server's settings nor those of
the account change what a statement means."""

from __future__ import annotations

from .mariadb_texts import COLLATION

SETTINGS = (
    # Texts are compared to the byte, and a backslash in one escapes.
    f"SET NAMES utf8mb4 COLLATE {COLLATION}",
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION lc_time_names = 'en_US'",
    "SET SESSION sql_select_limit = DEFAULT",
    "SET SESSION sql_select_limit = 18446744073709551615",
    # Sorting looks at no more of a text than this, and takes what begins alike for the same: it is more than a text of
    # 65,536 characters has, which is the longest that a statement makes. Fifteen such must fit into the buffer.
    "SET SESSION max_sort_length = 262144",
    "SET SESSION sort_buffer_size = 67108864",
    "SET SESSION lock_wait_timeout = 30",
    "SET SESSION sql_auto_is_null = 0",
    "SET SESSION big_tables = 0",
)
BEGIN = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
