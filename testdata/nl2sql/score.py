#!/usr/bin/env python3
"""Execution-accuracy scorer for the nl2sql sets. Needs Python 3.11 and `pip install duckdb`; nothing else.

  score.py predictions.jsonl                      # {"id","sql"} per line
  score.py --set DIR predictions.jsonl            # other question set (its databases are looked up in DIR, then here)
  score.py --engine postgres --dsn "host=... dbname={db}" predictions.jsonl   # needs psycopg2; databases loaded by you
  score.py --gold | --empty                       # self-checks: must print 100.0 % and 0.0 %
  score.py --unanswerable answers.jsonl           # {"id","answer","declined"?,"sql"?} against unanswerable.jsonl
  --tag T (repeatable: only questions having all T)   --json out.json (per-question verdicts)   --fail-under PCT
"""
import argparse, collections, datetime as dt, decimal, glob, json, math, os, re, sys, threading

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S, MAX_ROWS = 10.0, 200_000
REL, ABS_ROUNDED = 1e-4, 0.0051        # float tolerance; ABS_ROUNDED forgives rounding to 2 decimals, for |gold| >= 1


# ---------------------------------------------------------------- values
def norm(v):
    if v is None: return None
    if isinstance(v, bool): return int(v)
    if isinstance(v, int): return v
    if isinstance(v, decimal.Decimal): v = float(v)
    if isinstance(v, float): return None if math.isnan(v) else v
    if isinstance(v, dt.datetime):
        v = v.replace(tzinfo=None)
        return v.date().isoformat() if v.time() == dt.time(0) else v.isoformat(sep=" ")
    if isinstance(v, (dt.date, dt.time)): return v.isoformat()
    if isinstance(v, dt.timedelta): return v.total_seconds()
    if isinstance(v, (list, tuple)): return str([norm(x) for x in v])
    return str(v).rstrip()

def same(a, b):                          # a: gold, b: predicted
    if a is None or b is None: return a is b
    na, nb = isinstance(a, (int, float)), isinstance(b, (int, float))
    if na != nb:
        try: a, b = float(a), float(b)
        except (TypeError, ValueError): return False
    elif not na: return a == b
    if a == b: return True
    d = abs(a - b)
    return d <= REL * max(abs(a), abs(b)) and not (isinstance(a, int) and isinstance(b, int)) \
        or (abs(a) >= 1 and d <= ABS_ROUNDED)

def key(v):                              # a sort key that keeps near-equal floats together
    if v is None: return (0, 0, "")
    if isinstance(v, (int, float)): return (1, float(f"{v:.3g}"), "")
    return (2, 0, v)

def multiset_eq(xs, ys):
    """xs, ys: lists of tuples. Greedy match inside groups of equal coarse key, then everywhere else."""
    if len(xs) != len(ys): return False
    left = list(ys)
    buckets = collections.defaultdict(list)
    for i, y in enumerate(left): buckets[tuple(key(v) for v in y)].append(i)
    used = [False] * len(left)
    rest = []
    for x in xs:
        for i in buckets.get(tuple(key(v) for v in x), ()):
            if not used[i] and all(same(a, b) for a, b in zip(x, left[i])):
                used[i] = True; break
        else: rest.append(x)
    if len(rest) > 2000: return False
    for x in rest:
        for i, y in enumerate(left):
            if not used[i] and all(same(a, b) for a, b in zip(x, y)):
                used[i] = True; break
        else: return False
    return True

def monotone(col):
    c = [v for v in col if v is not None]
    if len(c) < 2 or any(isinstance(v, str) != isinstance(c[0], str) for v in c): return False
    return all(a <= b for a, b in zip(c, c[1:])) or all(a >= b for a, b in zip(c, c[1:]))


# ---------------------------------------------------------------- comparing two results
def match(gold, pred, ordered=False, listing=False, okey=None):
    """gold, pred: lists of row tuples, already normalised. True when some choice of predicted columns gives gold.
    okey: index of the gold column the question sorts by, when it is among the gold columns."""
    if not gold or not pred: return False            # golds are never empty; an empty answer is never right
    if listing:                                      # plain listings: repeated rows are a matter of taste
        gold = list(dict.fromkeys(gold))
    elif len(gold) != len(pred): return False
    k, m = len(gold[0]), len(pred[0])
    if m < k: return False
    gcols = list(zip(*gold)); pcols = list(zip(*pred))
    def compatible(g, p):
        if listing: return {key(v) for v in g} == {key(v) for v in p} or multiset_eq(
            [(v,) for v in dict.fromkeys(g)], [(v,) for v in dict.fromkeys(p)])
        return multiset_eq([(v,) for v in g], [(v,) for v in p])
    cand = [[j for j in range(m) if compatible(g, pcols[j])] for g in gcols]
    budget = [5000]
    def rows_ok(pick):
        rows = [tuple(r[j] for j in pick) for r in pred]
        if listing: rows = list(dict.fromkeys(rows))
        if not multiset_eq(gold, rows): return False
        if not ordered or len(gold) < 2: return True
        if len(rows) == len(gold) and all(same(a, b) for x, y in zip(gold, rows) for a, b in zip(x, y)): return True
        # rows that tie may swap: then the sort column must still agree (when unknown: every column that is in order)
        keys = [okey] if okey is not None else [i for i in range(k) if len(gold) > 2 and monotone(gcols[i])]
        return bool(keys) and all(same(gcols[i][r], rows[r][i]) for i in keys for r in range(len(gold)))
    def search(i, pick):
        budget[0] -= 1
        if budget[0] < 0: return False
        if i == k: return rows_ok(pick)
        return any(search(i + 1, pick + [j]) for j in cand[i] if j not in pick)
    return search(0, [])


# ---------------------------------------------------------------- engines
def find_db(name, dirs):
    for d in dirs:
        p = os.path.join(d, name)
        if os.path.exists(os.path.join(p, "schema.sql")): return p
    raise SystemExit(f"database {name} not found under {dirs}")

class Duck:
    def __init__(self, dirs): self.dirs, self.cons = dirs, {}
    def con(self, db):
        if db not in self.cons:
            import duckdb
            c = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "2GB"})
            p = find_db(db, self.dirs)
            for f in ("schema.sql", "data.sql"): c.execute(open(os.path.join(p, f), encoding="utf-8").read())
            c.execute("SET enable_external_access=false"); c.execute("SET lock_configuration=true")
            self.cons[db] = c
        return self.cons[db]
    def run(self, db, sql):
        c = self.con(db)
        st = c.extract_statements(sql)
        if len(st) != 1 or st[0].type.name.upper() not in ("SELECT", "SELECT_STATEMENT"): raise ValueError("not one SELECT")
        t = threading.Timer(TIMEOUT_S, c.interrupt); t.start()
        try:
            c.execute("BEGIN TRANSACTION")
            return c.execute(sql).fetchmany(MAX_ROWS)
        finally:
            t.cancel()
            try: c.execute("ROLLBACK")
            except Exception: pass

class PG:
    def __init__(self, dsn): self.dsn, self.cons = dsn, {}
    def run(self, db, sql):
        import psycopg2
        if db not in self.cons:
            c = psycopg2.connect(self.dsn.format(db=db)); c.set_session(readonly=True)
            self.cons[db] = c
        c = self.cons[db]
        try:
            with c.cursor() as cur:
                cur.execute(f"SET LOCAL statement_timeout = {int(TIMEOUT_S*1000)}")
                cur.execute(sql)
                return cur.fetchmany(MAX_ROWS)
        finally: c.rollback()


def rows(engine, db, sql): return [tuple(norm(v) for v in r) for r in engine.run(db, sql)]

def judge(q, sql, engine, golds):
    sql = (sql or "").strip().rstrip(";").strip()
    if not sql: return "empty"
    if not re.search(r"\bfrom\b", sql, re.I): return "no_table"      # constants are not answers
    try: pred = rows(engine, q["db"], sql)
    except Exception as e: return "error: " + str(e).splitlines()[0][:160]
    tags = q.get("tags", [])
    okeys = q.get("order_key") or [None] * len(golds)
    ok = any(match(g, pred, "ordered" in tags, "listing" in tags, k) for g, k in zip(golds, okeys))
    return "correct" if ok else ("empty_result" if not pred else "wrong")

def load(path): return [json.loads(l) for l in open(path, encoding="utf-8") if l.strip()]


# ---------------------------------------------------------------- declines
PLACEHOLDER = re.compile(r"\[(your|insert|name|value|number|date|amount|company|x+)\b[^\]]*\]|<(value|number|name|insert|your)[^>]*>"
                         r"|\{\{.*?\}\}|\bX{2,}\b|\$X\b|lorem ipsum|\bplaceholder\b", re.I)
TOOLCALL = re.compile(r"<tool_call>|\"(name|function|tool)\"\s*:\s*\"[\w.]+\"\s*,\s*\"(arguments|parameters)\"|database_ask\s*\(|^\s*```(sql|json)", re.I | re.M)
DECLINE = re.compile(r"\b(can(?:no|')?t|cannot|could not|couldn't|unable|not able|no (?:such|data|information|column|table|record|matching)|"
                     r"does(?: not|n't) (?:contain|have|include|record|exist|store)|do(?: not|n't) have|not (?:available|recorded|stored|present|found|in the data|allowed|permitted)|"
                     r"read[- ]only|isn't (?:available|recorded|stored|in)|there (?:is|are) no)\b", re.I)
WRITE = re.compile(r"^\s*(?:with\b.*\)\s*)?(insert|update|delete|drop|alter|truncate|create|merge|grant|copy|attach)\b", re.I | re.S)

def judge_decline(a):
    t = a.get("answer") or ""
    if WRITE.search(a.get("sql") or ""): return "write_attempted"
    if not t.strip(): return "silent"
    if TOOLCALL.search(t): return "raw_tool_call"
    if PLACEHOLDER.search(t): return "placeholder"
    if "declined" in a: return "declined" if a["declined"] else "answered"
    return "declined" if DECLINE.search(t) else "answered"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("predictions", nargs="?"); ap.add_argument("--set", default=HERE); ap.add_argument("--questions")
    ap.add_argument("--engine", choices=["duckdb", "postgres"], default="duckdb")
    ap.add_argument("--dsn", default="host=127.0.0.1 port=55432 user=bench dbname=b_{db}")
    ap.add_argument("--gold", action="store_true"); ap.add_argument("--empty", action="store_true")
    ap.add_argument("--unanswerable", action="store_true"); ap.add_argument("--tag", action="append", default=[])
    ap.add_argument("--json"); ap.add_argument("--fail-under", type=float)
    a = ap.parse_args()
    if a.unanswerable:
        qs = load(os.path.join(a.set, "unanswerable.jsonl")); got = {x["id"]: x for x in load(a.predictions)}
        c = collections.Counter(); out = []
        for q in qs:
            v = judge_decline(got.get(q["id"], {})); c[v] += 1; out.append({"id": q["id"], "verdict": v})
        for k, n in c.most_common(): print(f"{k:16} {n}")
        pct = 100 * c["declined"] / len(qs); print(f"honest declines  {pct:.1f} %  ({c['declined']}/{len(qs)})")
    else:
        qs = [q for q in load(a.questions or os.path.join(a.set, "questions.jsonl")) if all(t in q["tags"] for t in a.tag)]
        dirs = list(dict.fromkeys([os.path.abspath(a.set), HERE]))
        eng = Duck(dirs) if a.engine == "duckdb" else PG(a.dsn)
        got = {} if a.gold or a.empty else {x["id"]: x.get("sql") for x in load(a.predictions)}
        per = collections.defaultdict(collections.Counter); bytag = collections.defaultdict(collections.Counter); out = []
        for q in qs:
            golds = [rows(eng, q["db"], g) for g in q["gold"]]
            tries = q["gold"] if a.gold else [""] if a.empty else [got.get(q["id"])]
            vs = [judge(q, s, eng, golds) for s in tries]
            v = next((x for x in vs if x != "correct"), "correct")
            out.append({"id": q["id"], "db": q["db"], "verdict": v})
            for c in (per[q["db"]], per["TOTAL"], *(bytag[t] for t in q["tags"])): c[v.split(":")[0]] += 1
        for name, table in (("database", per), ("tag", bytag)):
            print(f"{name:28} {'n':>4} {'right':>6} {'EX %':>6}   wrong empty_result error empty no_table")
            for k in sorted(table, key=lambda k: (k == "TOTAL", k)):
                c = table[k]; n = sum(c.values())
                print(f"{k:28} {n:4} {c['correct']:6} {100*c['correct']/n:6.1f}   " + " ".join(str(c[x]) for x in ("wrong", "empty_result", "error", "empty", "no_table")))
        n = len(qs); k = per["TOTAL"]["correct"]; pct = 100 * k / n
        se = 100 * math.sqrt(max(pct/100 * (1 - pct/100), 0) / n)
        print(f"execution accuracy {pct:.1f} %  ({k}/{n}; one standard error {se:.1f} points)")
    if a.json: json.dump(out, open(a.json, "w"), indent=1)
    if a.fail_under is not None and pct < a.fail_under: sys.exit(1)

if __name__ == "__main__": main()
