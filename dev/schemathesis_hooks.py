"""Hooks of dev/schemathesis.sh: they aim some of the made-up requests at what is there, and write down all of the traffic.

A random database, model or statement is refused at the door. So that the rooms behind it are reached too, most bodies with
SQL get a statement of the list below, and some of the others a real model; the rest of the body stays as it was made up.
Whatever asks a model is kept few and short, since every token is computed.
"""
import base64
import itertools
import json
import os
import random
import threading

import schemathesis

from schemathesis_statements import STATEMENTS

random_ = random.Random(int(os.environ.get("SEED", "1")))
traffic = open(os.environ["SLUICE_TRAFFIC"], "a", encoding="utf-8")
lock = threading.Lock()

statement = itertools.cycle(STATEMENTS)
QUESTIONS = ["How many orders are there?", "Which customers are there?", "List all salaries.", "Delete all orders.", "x"]
CHAT, EMBED = "smollm2:135m", "all-minilm"
IDS = {"/v1/users/{id}": ["reader", "newcomer", "vaultclerk", "admin"], "/v1/keys/{id}": os.environ.get("SLUICE_IDS", "x").split(","),
       "/v1/grants/{id}": os.environ.get("SLUICE_GRANTS", "x").split(","), "/v1/models/{model}": [CHAT, EMBED]}
ACCEPTS = ["application/json", "text/csv", "application/x-ndjson", "application/vnd.apache.arrow.stream", "*/*", "text/html, text/csv;q=0.1"]
MODEL_ROUTES = {"/api/chat", "/api/generate", "/api/show", "/api/tokenize", "/api/detokenize", "/v1/chat/completions", "/v1/completions", "/v1/responses",
                "/v1/messages", "/v1/messages/count_tokens"}
EMBEDDERS = {"/api/embed", "/api/embeddings", "/v1/embeddings", "/api/rerank", "/v1/rerank"}


def sometimes(chance):
    return random_.random() < chance


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    if path in IDS and sometimes(0.5):
        name = next(iter(case.operation.path_parameters)).name
        case.path_parameters = {**case.path_parameters, name: random_.choice(IDS[path])}
    if path in ("/v1/schema/tables", "/v1/lake/external-tables") and sometimes(0.5):
        case.query = {**(case.query or {}), "database": random_.choice(["shop", "vaultpay", "sho"])}
    if path == "/v1/query/execute" and sometimes(0.7):
        case.headers = {**(case.headers or {}), "Accept": random_.choice(ACCEPTS)}
    if not isinstance(case.body, dict):
        return
    body = dict(case.body)
    if path in ("/v1/query/execute", "/v1/lake/copy") and sometimes(0.8):
        body["database"], body["sql"] = "shop", next(statement)
        if sometimes(0.7):
            body = {k: v for k, v in body.items() if k in ("database", "sql")}
            if "?" in body["sql"]:
                body["params"] = ["S"]
    if path == "/v1/database/ask" and sometimes(0.05):
        body = {"database": random_.choice(["shop", "shop", "vaultpay"]), "question": random_.choice(QUESTIONS), "stream": sometimes(0.5)}
    if path in MODEL_ROUTES | EMBEDDERS:
        real = sometimes(0.5) if path in EMBEDDERS else sometimes(float(os.environ.get("MODEL_SHARE", "0.1")))
        if real:
            body.pop("name", None)
            body["model"] = EMBED if path in EMBEDDERS else CHAT
            if "messages" in body and sometimes(0.5):
                body = {"model": CHAT, "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 2, "stream": sometimes(0.5)}
        elif body.get("model") == CHAT:  # an example's
            body["model"] = "none"
    case.body = short(body)


def short(body):
    """Bounds what a request may have computed."""
    for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(body.get(key), int) and body[key] > 8:
            body[key] = 8
    for key in ("n", "best_of"):
        if isinstance(body.get(key), int) and body[key] > 2:
            body[key] = 2
    options = body.get("options")
    if isinstance(options, dict):
        body["options"] = {k: v for k, v in options.items() if k not in ("num_ctx", "num_predict", "num_batch", "num_gpu", "num_thread")}
    return body


@schemathesis.hook
def after_call(context, case, response):
    request = response.request
    sent = request.body or b""
    if isinstance(sent, str):
        sent = sent.encode()
    if not isinstance(sent, bytes):
        sent = b""
    line = {"operation": case.operation.label, "method": request.method, "url": request.url, "headers": dict(request.headers),
            "sent": base64.b64encode(sent).decode(), "status": response.status_code, "answer_headers": response.headers,
            "answer": base64.b64encode(response.content or b"").decode()}
    line["headers"].pop("Authorization", None)
    with lock:
        traffic.write(json.dumps(line, default=str) + "\n")
        traffic.flush()
