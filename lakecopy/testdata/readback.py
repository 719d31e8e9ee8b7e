"""Reads back what COPY TO LAKE wrote, with pyarrow and DuckDB: programs that share no code with the writer.

Lines of JSON in: {"case": a line of lakecopy.jsonl, "root": the lake's root, "rows": rows that the run says it
published, "error": kind or null}. Lines out: {"id", "problems": [sentence, ...]}.
"""
import glob
import json
import os
import re
import sys

import duckdb
import pyarrow.parquet as pq

TARGET = re.compile(r"^COPY \((.*)\) TO LAKE '([^']*)' WITH \(", re.S)
PARTITION_BY = re.compile(r"PARTITION_BY = \(([^)]*)\)")


class Case:
    def __init__(self, line):
        self.case, self.root = line["case"], line["root"]
        self.rows, self.error = line["rows"], line["error"]
        self.query, self.path = TARGET.match(self.case["copy"]).groups()
        found = PARTITION_BY.search(self.case["copy"])
        self.keys = [k.strip() for k in found.group(1).split(",")] if found else []
        self.target = os.path.join(self.root, self.path)
        self.files = sorted(glob.glob(glob.escape(self.target) + "/**/*", recursive=True))
        self.files = [f for f in self.files if os.path.isfile(f)]
        self.db = duckdb.connect()
        for setup in self.case["setup"]:
            self.db.execute(setup)

    def lake(self):
        """The SQL that reads the target as the cases' README says."""
        files = "'" + self.target.replace("'", "''") + "/**/*.parquet'"
        # A refused COPY may name keys that the folder has not.
        keys = [k for k in self.keys if not self.error or all(f"/{k}=" in f for f in self.files)]
        if not keys:
            return f"read_parquet({files})"
        types = {r[0].lower(): r[1] for r in self.db.execute("DESCRIBE " + self.query).fetchall()}
        hive = ", ".join(f"{quote(k)}: {text_type(types[k.lower()])}" for k in keys)
        return f"read_parquet({files}, hive_partitioning=true, hive_types={{{hive}}})"

    def problems(self, expect):
        out = []
        if expect.get("error"):
            if self.error != expect["error"]:
                out.append(f"error is {self.error}, not {expect['error']}")
            if "final_rows" in expect:
                out += self.final(expect)
            elif self.files:
                out.append(f"files are visible after a failure: {self.files}")
            return out
        if self.error:
            return [f"it failed with {self.error}"]
        if self.rows != expect["rows"]:
            out.append(f"the run published {self.rows} rows, not {expect['rows']}")
        out += self.final(expect) + self.folders(expect)
        out += self.types(expect) + self.layout(expect) + self.sizes(expect)
        if "check" in self.case:
            sql = self.case["check"]["sql"].replace("{lake}", self.lake())
            out += same(self.db.execute(sql).fetchall(), self.case["check"]["rows"], sql)
        return out

    def final(self, expect):
        out = []
        if "final_rows" in expect:
            count = self.db.execute(f"SELECT count(*) FROM {self.lake()}").fetchone()[0]
            if count != expect["final_rows"]:
                out.append(f"the folder holds {count} rows, not {expect['final_rows']}")
        if "final" in expect:
            rows = self.db.execute(f"SELECT id::VARCHAR, region::VARCHAR FROM {self.lake()} ORDER BY id").fetchall()
            out += same(rows, expect["final"], "final")
        return out

    def folders(self, expect):
        has = sorted({os.path.relpath(os.path.dirname(f), self.target) for f in self.files})
        out = []
        if "partitions" in expect and has != sorted(expect["partitions"]):
            out.append(f"partitions are {has}, not {expect['partitions']}")
        if "partition_count" in expect and len(has) != expect["partition_count"]:
            out.append(f"there are {len(has)} partitions, not {expect['partition_count']}: {has}")
        limit = expect.get("files", {}).get("max_per_partition")
        for folder in has if limit else []:
            n = sum(os.path.dirname(f) == os.path.join(self.target, folder) for f in self.files)
            if n > limit:
                out.append(f"{folder} has {n} files, more than {limit}")
        return out

    def types(self, expect):
        out = []
        for f in self.files:
            schema = pq.ParquetFile(f).schema
            names = schema.to_arrow_schema().names
            for name in expect.get("absent_fields", []):
                if name in names:
                    out.append(f"{name} is a column of {f}")
            for name, want in expect.get("fields", {}).items():
                has = parquet_type(self.db, f, name)
                if not any(type_matches(has, w) for w in (want if isinstance(want, list) else [want])):
                    out.append(f"{name} is {has}, not {want}")
            out += required(self.db, f)
        return out

    def layout(self, expect):
        out, groups, stats = [], [], {}
        for f in self.files:
            meta = pq.ParquetFile(f).metadata
            groups += [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
            rows = self.db.execute(
                "SELECT path_in_schema, compression, stats_min_value, stats_max_value, stats_null_count,"
                " bloom_filter_offset, num_values FROM parquet_metadata(?)", [f]).fetchall()
            for path, codec, low, high, nulls, bloom, values in rows:
                if "codec" in expect and codec != expect["codec"]:
                    out.append(f"{path} is compressed by {codec}, not {expect['codec']}")
                stats.setdefault(path, []).append((low, high, nulls))
                want = expect.get("bloom", {}).get(path)
                if want is not None and (bloom is not None) != want:
                    out.append(f"{path} has {'no' if want else 'a'} bloom filter")
            if expect.get("page_index"):
                for g in range(meta.num_row_groups):
                    for c in range(meta.num_columns):
                        chunk = meta.row_group(g).column(c)
                        if not (chunk.has_column_index and chunk.has_offset_index):
                            out.append(f"{chunk.path_in_schema} has no page index")
        if "row_groups" in expect and groups != expect["row_groups"]:
            out.append(f"row groups are {groups}, not {expect['row_groups']}")
        for path, want in expect.get("stats", {}).items():
            rows = stats.get(path, [])
            if "nulls" in want and sum(r[2] or 0 for r in rows) != want["nulls"]:
                out.append(f"{path} counts nulls {[r[2] for r in rows]}, not {want['nulls']}")
            for key, at in (("min", 0), ("max", 1)):
                if key in want and [r[at] for r in rows] != [want[key]]:
                    out.append(f"{path} has {key} {[r[at] for r in rows]}, not {want[key]}")
        return out

    def sizes(self, expect):
        want, out = expect.get("files", {}), []
        n = len(self.files)
        if n < want.get("min", 0):
            out.append(f"{n} files, fewer than {want['min']}")
        if n > want.get("max", n) or n > want.get("max_total", n):
            out.append(f"{n} files, too many")
        for f in self.files:
            if os.path.getsize(f) > want.get("max_bytes_each", 1 << 60):
                out.append(f"{f} has {os.path.getsize(f)} bytes, more than {want['max_bytes_each']}")
        return out


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def text_type(name):
    return "VARCHAR" if name.startswith("ENUM") else name


def same(has, want, what):
    has = [[None if v is None else str(v) for v in row] for row in has]
    return [] if has == want else [f"{what}: rows {has}, not {want}"]


def nodes(db, f):
    """The Parquet schema as a tree, from DuckDB's reading of the footer."""
    rows = db.execute(
        "SELECT name, type, type_length, repetition_type, num_children, converted_type, scale, precision, logical_type"
        " FROM parquet_schema(?)", [f]).fetchall()

    def read(at):
        node, next_at, children = rows[at], at + 1, []
        for _ in range(node[4] or 0):
            child, next_at = read(next_at)
            children.append(child)
        return (node, children), next_at

    return read(0)[0]


def parquet_type(db, f, name):
    for node, children in nodes(db, f)[1]:
        if node[0] == name:
            return spell(node, children)
    return "absent"


def spell(node, children):
    _, physical, length, _, _, converted, scale, precision, logical = node
    logical = logical or ""
    if children:
        if logical.startswith("ListType") or converted == "LIST":
            item = children[0][1][0]
            return f"LIST({spell(*item)})"
        if logical.startswith("MapType") or converted == "MAP":
            key, value = children[0][1]
            return f"MAP({spell(*key)}, {spell(*value)})"
        return "STRUCT(" + ", ".join(f"{n[0]} {spell(n, c)}" for n, c in children) + ")"
    if physical == "FIXED_LEN_BYTE_ARRAY":
        physical = f"FLBA({length})"
    if logical.startswith("DecimalType") or converted == "DECIMAL":
        return f"DECIMAL({precision},{scale})"
    return (physical + " " + logical_name(logical, converted)).strip()


def logical_name(logical, converted):
    if logical.startswith("StringType"):
        return "STRING"
    for name in ("Date", "UUID", "Json", "JSON", "Enum"):
        if logical.startswith(name + "Type"):
            return name.upper()
    if logical.startswith("IntType"):
        width = re.search(r"bitWidth=([^,)]+)", logical).group(1)
        width = ord(width) if len(width) == 1 and not width.isdigit() else int(width)
        signed = re.search(r"isSigned=(\w+)", logical).group(1)
        return f"INT({width},{'signed' if signed in ('1', 'true') else 'unsigned'})"
    for name in ("Timestamp", "Time"):
        if logical.startswith(name + "Type"):
            unit = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}[re.search(r"(MILLIS|MICROS|NANOS)=(?!<null>)", logical).group(1)]
            utc = re.search(r"isAdjustedToUTC=(\w+)", logical).group(1) in ("1", "true")
            return f"{name.upper()}({unit},{'utc' if utc else 'local'})"
    if converted and converted.startswith(("INT_", "UINT_")):
        kind, width = converted.split("_")
        return f"INT({width},{'signed' if kind == 'INT' else 'unsigned'})"
    return {"UTF8": "STRING"}.get(converted, converted or "")


def type_matches(has, want):
    if has == want or has.replace("INT32 INT(32,signed)", "INT32").replace("INT64 INT(64,signed)", "INT64") == want:
        return True
    if want.endswith(",*)"):
        return has.startswith(want[:-2])
    return False


def required(db, f):
    """Every field is OPTIONAL except the keys of a map and what the format itself demands."""
    out = []

    def walk(tree, parent):
        node, children = tree
        if parent is not None and node[3] == "REQUIRED" and not (node[0] == "key"):
            out.append(f"{node[0]} is REQUIRED")
        for child in children:
            walk(child, node)

    walk(nodes(db, f), None)
    return out


def judge(line):
    case = Case(line)
    expect = case.case["expect"]
    if "any_of" not in expect:
        return case.problems(expect)
    tries = [case.problems(e) for e in expect["any_of"]]
    right = sum(not t for t in tries)
    return [] if right == 1 else [f"{right} of the right outcomes match: {tries}"]


for text in sys.stdin:
    line = json.loads(text)
    try:
        found = judge(line)
    except Exception as e:  # a reader that cannot read the files is a finding like any other
        found = [f"{type(e).__name__}: {e}"]
    print(json.dumps({"id": line["case"]["id"], "problems": found}), flush=True)
