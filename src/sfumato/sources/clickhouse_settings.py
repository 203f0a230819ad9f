"""What each statement in ClickHouse is run with: settings that its meaning leans on, so that neither those of the
server nor those of the account change it. One that a server does not know or does not let us set makes it refuse."""

from __future__ import annotations

SETTINGS = {
    # NULL where there is nothing, as in SQL.
    "join_use_nulls": "1",
    "aggregate_functions_null_for_empty": "1",
    "least_greatest_legacy_null_behavior": "0",
    "transform_null_in": "0",
    "cast_keep_nullable": "1",
    # Names mean what they mean elsewhere.
    "prefer_column_name_to_alias": "1",
    "enable_positional_arguments": "1",
    # Exactly, and all rows.
    "count_distinct_implementation": "'uniqExact'",
    "precise_float_parsing": "1",
    "decimal_check_overflow": "1",
    "final": "0",
    "limit": "0",
    "offset": "0",
    "additional_result_filter": "''",
    "use_query_cache": "0",
    "extremes": "0",
    "partial_result_on_first_cancel": "0",
    # A branch that is not taken is not computed.
    "short_circuit_function_evaluation": "'force_enable'",
    "date_time_overflow_behavior": "'ignore'",
    "session_timezone": "'UTC'",
    # Limits raise, where they would cut off in silence.
    **dict.fromkeys(
        (
            "read_overflow_mode", "read_overflow_mode_leaf", "group_by_overflow_mode", "sort_overflow_mode",
            "result_overflow_mode", "timeout_overflow_mode", "set_overflow_mode", "join_overflow_mode",
            "transfer_overflow_mode", "distinct_overflow_mode",
        ),
        "'throw'",
    ),
    # Statements are long.
    "max_query_size": "67108864",
    "max_ast_elements": "10000000",
    "max_expanded_ast_elements": "10000000",
    "max_ast_depth": "10000",
    "max_parser_depth": "10000",
    "max_parser_backtracks": "100000000",
    "max_subquery_depth": "1000",
}  # fmt: skip


BEHIND = " SETTINGS " + ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
"""What stands behind each statement."""
