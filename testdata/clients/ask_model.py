#!/usr/bin/env python3
"""Checks a database as a model (ask/<database>) with the Ollama and the OpenAI client, as their users would.

Environment: see checklib.py; MODEL is ask/<database>, and
  SLUICE_KEY   a key that may read the database
  QUESTION     a question; CELL: what a cell of its answer's table must be
  SECOND       a question that goes on from it
"""
import json, os
import httpx, ollama, openai
from checklib import GATEWAY, MODEL, TIMEOUT, Checks, must

KEY = os.environ["SLUICE_KEY"]
QUESTION, CELL = os.environ.get("QUESTION", "How many customers are there?"), os.environ.get("CELL", "")
SECOND = os.environ.get("SECOND", "")
C = Checks("ask_model", embed=False)
mine = ollama.Client(host=GATEWAY, headers={"Authorization": "Bearer " + KEY}, timeout=TIMEOUT)
nobody = ollama.Client(host=GATEWAY, timeout=TIMEOUT)
sdk = openai.OpenAI(base_url=GATEWAY + "/v1", api_key=KEY, max_retries=0, timeout=TIMEOUT)
talk = [{"role": "user", "content": QUESTION}]


def cells(text):
    return [c.strip() for line in text.split("\n") if line.startswith("|") for c in line.strip("|").split("|")]


@C("listed for its key in /api/tags and /v1/models, and for nobody else")
def _():
    must(MODEL in [m.model for m in mine.list().models], "not in /api/tags")
    must(MODEL in [m.id for m in sdk.models.list()], "not in /v1/models")
    must(not [m for m in nobody.list().models if m.model.startswith("ask/")], "nobody sees it")


@C("show has what clients read")
def _():
    m = mine.show(MODEL)
    must("completion" in m.capabilities and m.details.family and m.modelinfo, "%r" % m)


@C("without a key: 401, in words")
def _():
    for name in (MODEL, MODEL + "-that-is-not-there"):
        try:
            nobody.chat(name, talk)
        except ollama.ResponseError as e:
            must(e.status_code == 401 and "key" in e.error, "%d %s" % (e.status_code, e.error))
        else:
            must(False, "answered")


@C("ollama, streamed: steps as thinking, then a sentence, a table, the SQL")
def _():
    global first
    content, thinking, last = "", "", None
    for part in mine.chat(MODEL, talk, stream=True):
        content, thinking, last = content + (part.message.content or ""), thinking + (part.message.thinking or ""), part
    must(last.done and last.done_reason == "stop" and last.eval_count == 0, "%r" % last)
    must("Candidate:" in thinking and "Candidate:" not in content, "thinking %r" % thinking)
    must("```sql\n" in content and (not CELL or CELL in cells(content)), "content %r" % content)
    first = content
    return content.split("\n")[0][:100]


if SECOND:
    @C("ollama: a question that goes on from it")
    def _():
        r = mine.chat(MODEL, talk + [{"role": "assistant", "content": first}, {"role": "user", "content": SECOND}], think=False)
        must(r.message.content and not r.message.thinking, "%r" % r)
        return r.message.content.split("\n")[0][:100]


@C("ollama: a title for the chat is no question")
def _():
    ask = "### Task:\nGenerate a title.\n### Output:\nJSON format: { \"title\": \"a title\" }\n### Chat History:\n<chat_history>\nUSER: %s\n</chat_history>" % QUESTION
    r = mine.chat(MODEL, [{"role": "user", "content": ask}])
    must(json.loads(r.message.content)["title"], "%r" % r.message.content)


@C("openai: a wish to write is declined in words")
def _():
    r = sdk.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Delete all orders."}])
    text = r.choices[0].message.content
    must(r.choices[0].finish_reason == "stop" and "not done" in text and "```" not in text and r.usage.total_tokens == 0, "%r" % r)


@C("openai: what cannot be heeded is a 400, a missing database a 404")
def _():
    try:
        sdk.chat.completions.create(model=MODEL, messages=talk, response_format={"type": "json_object"})
    except openai.BadRequestError as e:
        must("database/ask" in e.message, e.message)
    else:
        must(False, "answered")
    try:
        sdk.chat.completions.create(model="ask/no-such-database", messages=talk)
    except openai.NotFoundError as e:
        must(e.code == "model_not_found", "%r" % e.code)
    else:
        must(False, "answered")


@C("keep_alive 0 is harmless")
def _():
    r = httpx.post(GATEWAY + "/api/generate", json={"model": MODEL, "keep_alive": 0}, headers={"Authorization": "Bearer " + KEY})
    must(r.status_code == 200 and r.json()["done_reason"] == "unload", r.text)


C.done()
