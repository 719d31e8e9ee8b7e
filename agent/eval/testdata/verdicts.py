"""What score.py says of each line of mutations.jsonl: verdicts.py NL2SQL_FOLDER > NL2SQL_FOLDER/mutations.verdicts.json

On PostgreSQL, with psycopg2 and the databases loaded (their names are the DSN's with {db} filled in):
verdicts.py NL2SQL_FOLDER 'host=… dbname=b_{db}' > agent/eval/testdata/postgres.verdicts.json

A line is {"case", "id", "sql"} and may bring its own gold, tags and order_key in place of the question's.
"""
import importlib.util, json, os, sys

folder = os.path.abspath(sys.argv[1])
spec = importlib.util.spec_from_file_location("score", os.path.join(folder, "score.py"))
score = importlib.util.module_from_spec(spec)
spec.loader.exec_module(score)

engine = score.PG(sys.argv[2]) if len(sys.argv) > 2 else score.Duck([folder])
questions = {q["id"]: q for q in score.load(os.path.join(folder, "questions.jsonl"))}
out = []
for line in score.load(os.path.join(folder, "mutations.jsonl")):
    q = dict(questions[line["id"]])
    for field in ("gold", "tags", "order_key"):
        if field in line:
            q[field] = line[field]
            if field == "gold":
                q.pop("order_key", None)
    if "order_key" in line:
        q["order_key"] = line["order_key"]
    try:
        golds = [score.rows(engine, q["db"], g) for g in q["gold"]]
    except Exception: # a line's own gold in DuckDB's words
        if len(sys.argv) == 2: raise
        out.append("gold")
        continue
    out.append(score.judge(q, line["sql"], engine, golds))
print(json.dumps(out, indent=0))
