#!/usr/bin/env python3
"""Checks a gateway's /v1/messages with the Anthropic Python SDK (and, for the wire itself, with its httpx).

Install:  python3 -m venv v && v/bin/pip install anthropic httpx
Run:      GATEWAY_URL=http://127.0.0.1:11434 MODEL=m:latest v/bin/python anthropic_sdk.py
Environment: see checklib.py; besides, GATEWAY_KEY is a key of the gateway. The SDK cannot do without one: unset, it is told to
send no key at all. Made for anthropic 0.40 to 2.14. Asserts protocol facts, never what a model says.
"""
import json, os
import anthropic, httpx
from checklib import GATEWAY, LONG, MODEL, NO_MODEL, TIMEOUT, UNICODE, Checks, Skip, forced, json_text, must, raises

C = Checks("anthropic_sdk", embed=False)
KEY = os.environ.get("GATEWAY_KEY", "")
OPTS = dict(base_url=GATEWAY, timeout=TIMEOUT, max_retries=0)
NO_KEY = {"X-Api-Key": anthropic.Omit(), "Authorization": anthropic.Omit()}
c = anthropic.Anthropic(api_key=KEY, **OPTS) if KEY else anthropic.Anthropic(api_key=None, auth_token=None, default_headers=NO_KEY, **OPTS)
raw = httpx.Client(base_url=GATEWAY, timeout=TIMEOUT, headers={"x-api-key": KEY} if KEY else {})
ASK = [{"role": "user", "content": "Say something about the sea."}]
TOOL = {"name": "get_weather", "description": "Get the weather of a city", "input_schema": {
    "type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}}}
schema = lambda t: {"output_config": {"format": {"type": "json_schema", "schema": forced(t)}}}
caps = raw.post("/api/show", json={"model": MODEL}).json().get("capabilities", [])


def args(extra=None, **k):
    # Sampling goes in the extra body: the SDK's newest versions have no names for it any more.
    return {"model": MODEL, "messages": ASK, "max_tokens": 6, **k, "extra_body": {"temperature": 0, **(extra or {})}}


def say(**k):
    return c.messages.create(**args(**k))


def final(**k):
    with c.messages.stream(**args(**k)) as s:
        return s.get_final_message()


def usage(u, most):
    read = u.input_tokens + (u.cache_read_input_tokens or 0)
    must(read > 0 and 0 < u.output_tokens <= most, "usage %r" % u)


@C("messages: one answer, id, role, stop_reason, usage")
def _():
    m = say()
    must(m.id.startswith("msg_") and m.type == "message" and m.role == "assistant" and m.model == MODEL, "%r" % m)
    must(all(b.type == "text" and b.text for b in m.content) and len(m.content) <= 1, "%r" % m.content)
    must(m.stop_reason in ("end_turn", "max_tokens") and m.stop_sequence is None, "%s %r" % (m.stop_reason, m.stop_sequence))
    usage(m.usage, 6)
    must(m.stop_reason == "end_turn" or m.usage.output_tokens == 6, "%s with %d of 6 tokens" % (m.stop_reason, m.usage.output_tokens))
    must(m._request_id, "no request-id header")


@C("max_tokens: a long forced answer stops after exactly 5 tokens")
def _():
    m = say(max_tokens=5, extra=schema(LONG))
    must(m.stop_reason == "max_tokens" and m.usage.output_tokens == 5, "%s, %d tokens" % (m.stop_reason, m.usage.output_tokens))


@C("stream: the SDK puts the events together to the message that its text is of")
def _():
    with c.messages.stream(**args(max_tokens=24)) as s:
        text = "".join(s.text_stream)
        m = s.get_final_message()
    must(text and "".join(b.text for b in m.content) == text and "\ufffd" not in text, "%r / %r" % (text[:80], m.content))
    must(m.stop_reason in ("end_turn", "max_tokens"), "%r" % m.stop_reason)
    usage(m.usage, 24)


@C("stream wire: named events in order, each block opened once and closed once")
def _():
    with raw.stream("POST", "/v1/messages", json={"model": MODEL, "max_tokens": 6, "messages": ASK, "stream": True}) as r:
        must(r.headers["content-type"].startswith("text/event-stream"), r.headers["content-type"])
        ev = [e.split("\n") for e in r.read().decode().split("\n\n") if e.strip()]
    must(all(len(e) == 2 and e[0].startswith("event: ") and e[1].startswith("data: ") for e in ev), "%r" % ev[:2])
    names, data = [e[0][7:] for e in ev], [json.loads(e[1][6:]) for e in ev]
    must([d["type"] for d in data] == names, "names and types differ")
    must(names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"], "%s" % names)
    start = data[0]["message"]
    must(start["content"] == [] and start["stop_reason"] is None and "input_tokens" in start["usage"], "%r" % start)
    inner = [n for n in names[1:-2] if n != "ping"]
    must(inner[0] == "content_block_start" and inner[-1] == "content_block_stop" and set(inner[1:-1]) == {"content_block_delta"}, "%s" % names)
    must({d["index"] for d in data if "index" in d} == {0}, "indexes")


@C("a forced answer with its Unicode intact, whole and streamed")
def _():
    json_text("".join(b.text for b in say(max_tokens=300, extra=schema(UNICODE)).content), UNICODE)
    with c.messages.stream(**args(max_tokens=300, extra=schema(UNICODE))) as s:
        json_text("".join(s.text_stream), UNICODE)


@C("system prompt, content blocks, metadata and sampling are accepted")
def _():
    m = say(system=[{"type": "text", "text": "Sei kurz.", "cache_control": {"type": "ephemeral"}}], metadata={"user_id": "u"}, max_tokens=3, extra={"top_k": 5, "top_p": 0.9},
            stop_sequences=["zzz"], messages=[{"role": "user", "content": [{"type": "text", "text": "Hallo"}, {"type": "text", "text": "Köln"}]},
                                              {"role": "assistant", "content": [{"type": "text", "text": "Ja?"}]}, {"role": "user", "content": "Mehr!"}])
    must(m.role == "assistant", "%r" % m)


@C("stop_sequences: the answer ends before one")
def _():
    whole = "".join(b.text for b in say(max_tokens=24).content)
    words = [w for w in whole.split() if len(w) > 3]
    if len(words) < 3:
        raise Skip("the model says too little: %r" % whole)
    m = say(max_tokens=24, stop_sequences=[words[2]])
    text = "".join(b.text for b in m.content)
    must(words[2] not in text and whole.startswith(text), "%r is not %r up to %r" % (text, whole, words[2]))
    must(m.stop_reason in ("stop_sequence", "end_turn"), m.stop_reason)


@C("thinking: asked of a model that cannot, it is left out; of one that can, it is a block of its own")
def _():
    m = say(max_tokens=2048 if "thinking" in caps else 6, thinking={"type": "enabled", "budget_tokens": 1024})
    kinds = [b.type for b in m.content]
    must("thinking" in kinds if "thinking" in caps else "thinking" not in kinds, "%s from a model that can %s" % (kinds, caps))
    must("thinking" not in [b.type for b in say().content], "a thinking block that nobody asked for")


@C("tools: accepted, calls have an id and an object as input, a tool's result is accepted")
def _():
    ask = [{"role": "user", "content": "Use the tool: weather in Köln?"}]
    n = 0
    for m in (say(messages=ask, tools=[TOOL], max_tokens=64), final(messages=ask, tools=[TOOL], max_tokens=64)):
        calls = [b for b in m.content if b.type == "tool_use"]
        n += len(calls)
        must(all(b.id and b.name == "get_weather" and isinstance(b.input, dict) for b in calls), "%r" % calls)
        must((m.stop_reason == "tool_use") == bool(calls), "%s with %d calls" % (m.stop_reason, len(calls)))
    m = say(tools=[TOOL], max_tokens=4, messages=ask + [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Köln"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "18 °C"}]}]}])
    must(m.role == "assistant", "%r" % m)
    return "%d well-formed call(s)" % n


@C("tool_choice: any and tool force a call, none forbids it")
def _():
    if "tools" not in caps:
        raise Skip("MODEL has no tools capability")
    ask = [{"role": "user", "content": "Weather in Köln?"}]
    for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}, {"type": "any", "disable_parallel_tool_use": True}):
        for m in (say(messages=ask, tools=[TOOL], tool_choice=choice, max_tokens=200), final(messages=ask, tools=[TOOL], tool_choice=choice, max_tokens=200)):
            calls = [b for b in m.content if b.type == "tool_use"]
            must(m.stop_reason == "tool_use" and len(calls) == 1 and isinstance(calls[0].input.get("city"), str), "%s: %s %r" % (choice, m.stop_reason, m.content))
    m = say(messages=ask, tools=[TOOL], tool_choice={"type": "none"}, max_tokens=64)
    must(m.stop_reason != "tool_use" and all(b.type == "text" for b in m.content), "%r" % m.content)


@C("count_tokens: what the same request is then billed for")
def _():
    k = dict(system="Be brief.", messages=[{"role": "user", "content": "Grüße aus Köln, 日本語 👋"}])
    n = c.messages.count_tokens(model=MODEL, **k).input_tokens
    u = say(**k).usage
    must(n > 0 and n == u.input_tokens + (u.cache_read_input_tokens or 0), "counted %d, used %r" % (n, u))
    must(c.messages.count_tokens(model=MODEL, messages=ASK * 3).input_tokens > c.messages.count_tokens(model=MODEL, messages=ASK).input_tokens, "more text, not more tokens")
    return "%d tokens" % n


@C("cache: the second turn reads its prefix from the cache, and says so")
def _():
    first = [{"role": "user", "content": "Tell me of the sea, the wind and the old harbour. " * 4}]
    m = say(messages=first)
    text = "".join(b.text for b in m.content) or "x"
    u = say(messages=first + [{"role": "assistant", "content": text}, {"role": "user", "content": "And?"}]).usage
    must((u.cache_read_input_tokens or 0) > 20, "%r" % u)
    return "%d of %d tokens" % (u.cache_read_input_tokens, u.cache_read_input_tokens + u.input_tokens)


@C("errors: an unknown model is NotFoundError 404 with type and request id")
def _():
    for k, f in {"create": lambda: say(model=NO_MODEL), "stream": lambda: final(model=NO_MODEL), "count": lambda: c.messages.count_tokens(model=NO_MODEL, messages=ASK)}.items():
        e = raises(anthropic.NotFoundError, f)
        must(e.body["type"] == "error" and e.body["error"]["type"] == "not_found_error" and e.body["request_id"], "%s: %r" % (k, e.body))
        must(NO_MODEL.split(":")[0] in e.body["error"]["message"], "%s: %r" % (k, e.body))


@C("errors: bad input is BadRequestError 400 with a message")
def _():
    image = [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://example.invalid/a.png"}}]}]
    for k, f in {"no messages": lambda: say(messages=[]), "max_tokens 0": lambda: say(max_tokens=0), "an image by its address": lambda: say(messages=image),
                 "a choice of no tool": lambda: say(tools=[TOOL], tool_choice={"type": "tool", "name": "other"})}.items():
        e = raises(anthropic.BadRequestError, f)
        must(e.body["error"]["type"] == "invalid_request_error" and e.body["error"]["message"], "%s: %r" % (k, e.body))
    r = raw.post("/v1/messages", content=b'{"model":')
    must(r.status_code == 400 and r.json()["error"]["message"], "broken JSON: %d %s" % (r.status_code, r.text[:100]))


@C("errors: a wrong key is AuthenticationError 401 in both headers")
def _():
    for k in ({"api_key": "slc_wrong"}, {"auth_token": "slc_wrong", "api_key": None}):
        e = raises(anthropic.AuthenticationError, lambda: anthropic.Anthropic(**k, **OPTS).messages.create(model=MODEL, max_tokens=1, messages=ASK))
        must(e.body["error"]["type"] == "authentication_error", "%r" % e.body)


C.done()
