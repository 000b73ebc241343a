"""Asks several engines the ten questions, and compares every value: compare.py LAKE ENGINE ENGINE...

Engines: iostep (iostep fleet ask; IOSTEP names the program), duckdb, spark, clickhouse. The first is what the
others are compared with. Numbers are equal if they differ by a billionth at most, since means are
summed in any order; all else must be the same, in the same order. For each engine and question the
time is printed, which includes the start of iostep's engine.
"""

import glob
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = ["segments", "requests", "syncs", "results", "traces"]
RELATIVE = 1e-9


class Iostep:
    def __init__(self, lake):
        self.lake = lake
        self.program = os.environ.get("IOSTEP", "iostep")

    def ask(self, question, _sql):
        command = [self.program, "fleet", "ask", question, self.lake, "--json"]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return answer["columns"], answer["rows"]


class DuckDB:
    def __init__(self, lake):
        import duckdb

        self.connection = duckdb.connect()
        for table in tables(lake):
            files = f"{lake}/{table}/*/*.parquet"
            self.connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM "
                f"read_parquet('{files}', hive_partitioning = true)"
            )

    def ask(self, _question, sql):
        answer = self.connection.execute(sql)
        return [column[0] for column in answer.description], answer.fetchall()


class Spark:
    def __init__(self, lake):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2]"))
        # One partition a worker: there are no more of them.
        builder = builder.config("spark.sql.shuffle.partitions", "2")
        self.session = builder.config("spark.ui.enabled", "false").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for table in tables(lake):
            self.session.read.parquet(f"{lake}/{table}").createOrReplaceTempView(table)

    def ask(self, _question, sql):
        answer = self.session.sql(sql)
        return answer.columns, [tuple(row) for row in answer.collect()]


class ClickHouse:
    # What the SQL standard says, where ClickHouse has a rule of its own: a missing row of a join and of
    # lag() is NULL, and a column is found before an alias of the same name.
    SETTINGS = (
        "join_use_nulls = 1, schema_inference_make_columns_nullable = 1, "
        "prefer_column_name_to_alias = 1, output_format_json_quote_64bit_integers = 0"
    )

    def __init__(self, lake):
        from chdb.session import Session

        self.session = Session()
        self.session.query(f"SET {self.SETTINGS}")
        for table in tables(lake):
            files = f"file('{lake}/{table}/*/*.parquet', 'Parquet')"
            self.session.query(f"CREATE VIEW {table} AS SELECT * FROM {files}")

    def ask(self, _question, sql):
        answer = json.loads(str(self.session.query(sql, "JSONCompact")))
        return [column["name"] for column in answer["meta"]], answer["data"]


ENGINES = {"iostep": Iostep, "duckdb": DuckDB, "spark": Spark, "clickhouse": ClickHouse}


def tables(lake):
    return [table for table in TABLES if glob.glob(f"{lake}/{table}/*/*.parquet")]


def questions():
    for path in sorted(glob.glob(f"{HERE}/questions/*.sql")):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path).removesuffix(".sql"), file.read()


def is_same(one, other):
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=RELATIVE)


def differences(first, other):
    """What the answers differ in, a line each."""
    (columns, rows), (other_columns, other_rows) = first, other
    if list(columns) != list(other_columns):
        yield f"columns {columns} and {other_columns}"
    elif len(rows) != len(other_rows):
        yield f"{len(rows)} rows and {len(other_rows)}"
    else:
        for place, (row, other_row) in enumerate(zip(rows, other_rows)):
            for column, one, two in zip(columns, row, other_row):
                if not is_same(one, two):
                    yield f"row {place + 1}, {column}: {one!r} and {two!r}"


def main(lake, names):
    engines = [(name, ENGINES[name](lake)) for name in names]
    failed = False
    values = 0
    for question, sql in questions():
        answers, times = [], []
        for name, engine in engines:
            began = time.monotonic()
            answers.append(engine.ask(question, sql))
            times.append(f"{name} {time.monotonic() - began:.2f} s")
        columns, rows = answers[0]
        values += len(columns) * len(rows)
        print(f"{question}: {len(rows)} rows; {', '.join(times)}", flush=True)
        for (name, _), answer in zip(engines[1:], answers[1:]):
            found = list(differences(answers[0], answer))
            failed = failed or bool(found)
            for line in found[:5]:
                print(f"  {names[0]} and {name}: {line}")
    print(f"{values} values of {', '.join(names)}: {'they differ' if failed else 'the same'}")
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) < 4 or not set(sys.argv[2:]) <= ENGINES.keys():
        sys.exit(__doc__.split("\n", maxsplit=1)[0])
    sys.exit(main(sys.argv[1], sys.argv[2:]))
