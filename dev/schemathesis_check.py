"""What dev/schemathesis.sh asks before and after: it makes the accounts, and looks whether anything was written or told.

    schemathesis_check.py prepare DIR    users, keys and grants; DIR/keys.env, DIR/secrets.json
    schemathesis_check.py state DIR      the state as an admin sees it, on stdout
    schemathesis_check.py probe DIR      every statement of the list, as each caller; DIR/traffic-probe.jsonl
    schemathesis_check.py verify DIR     before.json against after.json, DIR/traffic-*.jsonl, the files
"""
import base64
import collections
import glob
import json
import os
import sys
import urllib.parse

import requests

from schemathesis_statements import STATEMENTS

URL = os.environ["SLUICE_URL"]
ADMIN = {"Authorization": "Bearer " + os.environ["SLUICE_ADMIN_KEY"]}
# Words that no caller of the runs may read: of a table, its column, a database, a connection, a user and a comment.
NAMES = ["vault_salaries", "salary_note", "vaultpay", "vault_ledger", "vaultlake", "vaultclerk", "vault remark"]


def api(method, path, body=None):
    r = requests.request(method, URL + path, headers=ADMIN, json=body, timeout=60)
    r.raise_for_status()
    return r.json()["data"]


def rows(database, sql):
    return api("POST", "/v1/query/execute", {"database": database, "sql": sql})


def prepare(folder):
    for name in ("reader", "newcomer", "vaultclerk"):
        api("POST", "/v1/users", {"name": name, "role": "read_only", "password": "a password that nobody guesses"})
    grant = api("POST", "/v1/grants", {"principal": "reader", "kind": "table", "database": "shop", "table": "orders"})
    reader = api("POST", "/v1/keys", {"name": "reader's", "role": "read_only", "owner": "reader"})
    newcomer = api("POST", "/v1/keys", {"name": "without grants", "role": "read_only", "owner": "newcomer"})
    clerk = api("POST", "/v1/keys", {"name": "another's", "role": "read_only", "owner": "vaultclerk"})
    with open(os.path.join(folder, "keys.env"), "w") as f:
        f.write(f"READER={reader['key']}\nNEWCOMER={newcomer['key']}\nexport SLUICE_IDS={reader['id']},{newcomer['id']},{clerk['id']}\nexport SLUICE_GRANTS={grant['id']}\n")
    # Every text of the tables without a grant that cannot be a chance hit, as far as it does not stand in orders too.
    values = set()
    for database in ("shop", "vaultpay"):
        for table in api("GET", "/v1/schema/tables?database=" + database):
            if (database, table["name"]) == ("shop", "orders"):
                continue
            for row in rows(database, f'SELECT * FROM "{table["name"]}"')["rows"]:
                values.update(v for v in row if isinstance(v, str) and len(v) >= 10 and not v[:4].isdigit() and any(c in v for c in " @-"))
    for row in rows("shop", "SELECT * FROM orders")["rows"]:
        values.difference_update(v for v in row if isinstance(v, str))
    assert len(values) > 50, f"only {len(values)} secret values: the search would find nothing"
    json.dump(sorted(values), open(os.path.join(folder, "secrets.json"), "w"))


def state():
    keys = api("GET", "/v1/keys")
    for k in keys:
        k["last_used"] = None
    audit = collections.Counter(e["kind"] for e in api("GET", "/v1/audit?limit=1000"))
    counts = {}
    for database in ("shop", "vaultpay"):
        for table in api("GET", "/v1/schema/tables?database=" + database):
            n = rows(database, f'SELECT count(*) FROM "{table["name"]}"')["rows"][0][0]
            counts[f"{database}.{table['name']}"] = n
    tags = requests.get(URL + "/api/tags", headers=ADMIN, timeout=60).json()["models"]
    return {"users": api("GET", "/v1/users"), "keys": keys, "grants": api("GET", "/v1/grants"), "rows": counts,
            "models": sorted((m["name"], m["digest"]) for m in tags), "runs": api("GET", "/v1/lake/runs"),
            "external tables": api("GET", "/v1/lake/external-tables"), "ledger": api("GET", "/v1/audit/verify")["status"], "audit": audit}


def probe(folder):
    with open(os.path.join(folder, "traffic-probe.jsonl"), "w", encoding="utf-8") as f:
        for key in (os.environ["READER"], os.environ["NEWCOMER"], None):
            headers = {"Authorization": "Bearer " + key} if key else {}
            for path, accept in (("/v1/query/execute", "application/json"), ("/v1/query/execute", "application/x-ndjson"), ("/v1/lake/copy", "application/json")):
                for sql in STATEMENTS:
                    body = {"database": "shop", "sql": sql}
                    if "?" in sql:
                        body["params"] = ["S"]
                    r = requests.post(URL + path, headers={**headers, "Accept": accept}, json=body, timeout=60)
                    f.write(json.dumps({"operation": "POST " + path, "method": "POST", "url": r.url, "headers": {}, "status": r.status_code,
                                        "sent": base64.b64encode(json.dumps(body).encode()).decode(), "answer_headers": dict(r.headers),
                                        "answer": base64.b64encode(r.content).decode()}) + "\n")


def verify(folder):
    problems = []
    before, after = (json.load(open(os.path.join(folder, n + ".json"))) for n in ("before", "after"))
    # A login that failed and an ask leave their traces, as they must; and everybody marks his own asks and confirms statements for himself.
    for kind in set(after["audit"]) - {"auth.login", "ask.run", "ask.end", "learning.mark", "learning.verify", "learning.withdraw"}:
        if after["audit"][kind] != before["audit"].get(kind, 0):
            problems.append(f"the ledger has {after['audit'][kind] - before['audit'].get(kind, 0)} new entries of the kind {kind}")
    for what in before:
        if what != "audit" and before[what] != after[what]:
            problems.append(f"{what} changed: {before[what]} became {after[what]}")
    secrets = json.load(open(os.path.join(folder, "secrets.json")))
    statuses, reached, leaks = collections.Counter(), collections.Counter(), []
    for file in sorted(glob.glob(os.path.join(folder, "traffic-*.jsonl"))):
        for text in open(file, encoding="utf-8"):
            line = json.loads(text)
            statuses[line["status"]] += 1
            if line["status"] == 200:
                reached[line["operation"]] += 1
            sent = base64.b64decode(line["sent"])
            asked = (urllib.parse.unquote(line["url"]) + json.dumps(line["headers"]) + sent.decode("utf-8", "replace")).lower()
            try:
                asked += json.dumps(json.loads(sent), ensure_ascii=False).lower()
            except ValueError:
                pass
            got = json.dumps(line["answer_headers"]) + base64.b64decode(line["answer"]).decode("utf-8", "replace")
            told = [s for s in secrets if s in got] + [n for n in NAMES if n in got.lower() and n not in asked]
            if told:
                leaks.append((line, told))
            if line["status"] >= 500 and line["status"] not in (501, 503, 529):
                problems.append(f"status {line['status']}: {line['method']} {line['url']} {sent[:500]!r} answers {got[-500:]}")
    for line, told in leaks[:20]:
        problems.append(f"{line['method']} {line['url']} {base64.b64decode(line['sent'])[:500]!r} tells {told[:3]}: {base64.b64decode(line['answer'])[:500]!r}")
    total = sum(statuses.values())
    print(f"{total} requests: " + ", ".join(f"{n} × {s}" for s, n in sorted(statuses.items())))
    print("answered with 200: " + ", ".join(f"{op} {n}" for op, n in sorted(reached.items())))
    for needed in ("POST /v1/query/execute", "GET /v1/schema/tables", "POST /api/chat", "POST /v1/chat/completions", "POST /v1/messages", "POST /api/embed", "GET /v1/databases"):
        if not reached[needed] and "PART" not in os.environ:
            problems.append(f"{needed} was never answered with 200: the run reached nothing behind the door")
    log = open(os.path.join(folder, "server.log"), encoding="utf-8", errors="replace").read()
    for s in secrets + ['"msg":"panic"']:
        if s in log:
            problems.append(f"the server's log holds {s!r}")
    for p in problems:
        print("PROBLEM:", p)
    print(f"{len(secrets)} secret values and {len(NAMES)} names looked for in {total} answers; {len(problems)} problems")
    return bool(problems)


command, folder = sys.argv[1:3]
if command == "prepare":
    prepare(folder)
elif command == "probe":
    probe(folder)
elif command == "state":
    json.dump(state(), sys.stdout, sort_keys=True)
else:
    sys.exit(verify(folder))
