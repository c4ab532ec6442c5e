"""Which SQL people may run."""

import pytest

from gateway.stores.records.guard import SQL_CHARACTERS_MAX, one_statement, refusal


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "  (select 1) ; ",
        "with a as (select 1) select * from a",
        "select ';' , \"a;b\", `c;d` -- ; e\n from x /* ; */",
        "select 'it''s; fine'",
        "explain select 1",
        "show tables",
        "-- what was late last week\n/* drop; */ ( -- so\nselect 1)",
    ],
)
def test_one_statement_that_reads_may_run(sql: str) -> None:
    assert refusal(sql) == ""


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("", "must begin with"),
        ("insert into calls values (1)", "must begin with"),
        ("KILL QUERY WHERE 1", "must begin with"),
        ("-- x\ndrop table calls", "must begin with"),
        ("/* select */ kill query where 1", "must begin with"),
        ("/* /* select */ kill query where 1", "must begin with"),
        ("/*/ select 1 */ kill query where 1", "must begin with"),
        ("/* select 1", "must begin with"),
        ("-- select 1", "must begin with"),
        ("/**/" * 20_000 + "kill", "must begin with"),
        ("select 1 into outfile '/tmp/x'", "OUTFILE"),
        ("select 1 into /* */ OutFile '/tmp/x'", "OUTFILE"),
        ("select 1; kill query where 1", "one statement"),
        ("select " + "1," * SQL_CHARACTERS_MAX, "characters"),
    ],
)
def test_anything_else_is_refused_with_a_reason(sql: str, why: str) -> None:
    assert why in refusal(sql)


def test_a_semicolon_at_the_end_is_left_out() -> None:
    assert one_statement(" select 1 ;\n ") == "select 1"
