"""Asks several engines the ten questions, and compares every value.

usage: compare.py [--bucket s3://BUCKET/PATH] LAKE ENGINE ENGINE...

Engines: iostep (iostep fleet ask; IOSTEP names the program), duckdb, spark, clickhouse, and clickhouse-copy,
which makes a copy of the lake in ClickHouse's own format first. The first is what the others are compared
with. Numbers are equal if they differ by a billionth at most, since means are summed in any order; all else
must be the same, in the same order. For each engine and question the time is printed, which includes the
start of iostep's engine.

--bucket: spark, clickhouse and clickhouse-copy read the copy of the lake that is there, as docs/fleet.md
makes it. AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are the object storage's; Spark fetches
its connector, 0.7 GB, if it has not got it.
"""

import argparse
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


class Place:
    """Where the engines find the tables: in the lake's directory, or in a bucket that it was copied to."""

    VARIABLES = ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]

    def __init__(self, lake, bucket):
        self.lake = lake
        self.bucket = bucket
        self.tables = [table for table in TABLES if glob.glob(f"{lake}/{table}/*/*.parquet")]
        if bucket:
            self.endpoint, self.key, self.secret = (os.environ[name] for name in self.VARIABLES)


class Iostep:
    def __init__(self, place):
        self.lake = place.lake
        self.program = os.environ.get("IOSTEP", "iostep")

    def ask(self, question, _sql):
        command = [self.program, "fleet", "ask", question, self.lake, "--json"]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return answer["columns"], answer["rows"]


class DuckDB:
    def __init__(self, place):
        import duckdb

        self.connection = duckdb.connect()
        for table in place.tables:
            files = f"{place.lake}/{table}/*/*.parquet"
            self.connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM "
                f"read_parquet('{files}', hive_partitioning = true)"
            )

    def ask(self, _question, sql):
        answer = self.connection.execute(sql)
        return [column[0] for column in answer.description], answer.fetchall()


class Spark:
    def __init__(self, place):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2]"))
        # One partition a worker: there are no more of them.
        builder = builder.config("spark.sql.shuffle.partitions", "2")
        for name, value in self.connector(place).items():
            builder = builder.config(name, value)
        for name in ["spark.ui.enabled", "spark.ui.showConsoleProgress"]:
            builder = builder.config(name, "false")
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        # Its connector calls the same storage s3a.
        root = "s3a" + place.bucket.removeprefix("s3") if place.bucket else place.lake
        for table in place.tables:
            self.session.read.parquet(f"{root}/{table}").createOrReplaceTempView(table)

    @staticmethod
    def connector(place):
        """What Spark needs to read a bucket: the connector of its own Hadoop version, and where the bucket
        is. The keys it takes from the environment."""
        if not place.bucket:
            return {}
        import pyspark

        client = "hadoop-client-api-"
        [jar] = glob.glob(f"{os.path.dirname(pyspark.__file__)}/jars/{client}*.jar")
        hadoop = os.path.basename(jar).removeprefix(client).removesuffix(".jar")
        return {
            "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{hadoop}",
            "spark.hadoop.fs.s3a.endpoint": place.endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

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

    # All sessions of a process share their databases.
    DATABASE = "views"
    KIND = "VIEW {}"

    def __init__(self, place):
        from chdb.session import Session

        self.session = Session()
        self.session.query(f"CREATE DATABASE {self.DATABASE}")
        self.session.query(f"USE {self.DATABASE}")
        self.session.query(f"SET {self.SETTINGS}")
        for table in place.tables:
            made = self.KIND.format(table)
            self.session.query(f"CREATE {made} AS SELECT * FROM {self.files(place, table)}")

    @staticmethod
    def files(place, table):
        if not place.bucket:
            return f"file('{place.lake}/{table}/*/*.parquet', 'Parquet')"
        root = f"{place.endpoint}/{place.bucket.removeprefix('s3://')}"
        return f"s3('{root}/{table}/*/*.parquet', '{place.key}', '{place.secret}', 'Parquet')"

    def ask(self, _question, sql):
        answer = json.loads(str(self.session.query(sql, "JSONCompact")))
        return [column["name"] for column in answer["meta"]], answer["data"]


class ClickHouseCopy(ClickHouse):
    DATABASE = "copies"
    KIND = "TABLE {} ENGINE = MergeTree ORDER BY (model, day) SETTINGS allow_nullable_key = 1"


ENGINES = {
    "iostep": Iostep,
    "duckdb": DuckDB,
    "spark": Spark,
    "clickhouse": ClickHouse,
    "clickhouse-copy": ClickHouseCopy,
}


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


def main(place, names):
    engines = [(name, ENGINES[name](place)) for name in names]
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
    where = f" at {place.bucket}" if place.bucket else ""
    print(f"{values} values of {', '.join(names)}{where}: {'they differ' if failed else 'the same'}")
    return int(failed)


def arguments():
    parser = argparse.ArgumentParser(
        usage=__doc__.split("usage: ")[1].split("\n", maxsplit=1)[0],
        description="Asks several engines the ten questions, and compares every value.",
    )
    parser.add_argument("--bucket", metavar="s3://BUCKET/PATH")
    parser.add_argument("lake", metavar="LAKE")
    parser.add_argument("engines", metavar="ENGINE", nargs="+", choices=ENGINES)
    given = parser.parse_args()
    if len(given.engines) < 2:
        parser.error("one engine has none to be compared with; name two or more")
    if given.bucket:
        if not given.bucket.startswith("s3://"):
            parser.error(f"{given.bucket} is no bucket; write it as s3://BUCKET/PATH")
        if "duckdb" in given.engines:
            parser.error("duckdb reads no bucket here, and would read LAKE; leave it out")
        missing = [name for name in Place.VARIABLES if not os.environ.get(name)]
        if missing:
            parser.error(f"--bucket needs {', '.join(missing)} in the environment")
    place = Place(given.lake, given.bucket and given.bucket.rstrip("/"))
    if not place.tables:
        parser.error(f"{given.lake} has no table; name a lake that has traces or results")
    return place, given.engines


if __name__ == "__main__":
    sys.exit(main(*arguments()))
