"""OpenAI's own Python client against a running server: openai_client.py BASE_URL"""
import json
import sys
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=5)
failures = 0


def check(name, holds, shown=""):
    global failures
    print(("ok      " if holds else "FAILED  ") + name, "" if holds else shown)
    failures += not holds


model = client.models.list().data[0].id
question = [{"role": "user", "content": "What is the capital of France? One short sentence."}]

chat = client.chat.completions.create(model=model, messages=question, temperature=0, max_tokens=40)
answer = chat.choices[0].message.content
check("chat", "Paris" in answer and chat.choices[0].finish_reason == "stop", answer)
check("usage", chat.usage.total_tokens == chat.usage.prompt_tokens + chat.usage.completion_tokens, chat.usage)

stream = client.chat.completions.create(model=model, messages=question, temperature=0, max_tokens=40, stream=True,
                                        stream_options={"include_usage": True})
pieces = list(stream)
text = "".join(p.choices[0].delta.content or "" for p in pieces if p.choices)
check("stream", text == answer, text)
check("stream usage", pieces[-1].usage.completion_tokens == chat.usage.completion_tokens, pieces[-1])

history = question + [{"role": "assistant", "content": answer}, {"role": "user", "content": "And of Italy?"}]
second = client.chat.completions.create(model=model, messages=history, temperature=0, max_tokens=40)
check("history is known", second.usage.prompt_tokens_details.cached_tokens > 0, second.usage)

schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "big": {"type": "boolean"}},
          "required": ["city", "big"], "additionalProperties": False}
shaped = client.chat.completions.create(
    model=model, messages=[{"role": "user", "content": "A city as JSON, please."}], temperature=0, max_tokens=100,
    response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema}})
parsed = json.loads(shaped.choices[0].message.content)
check("json_schema", set(parsed) == {"city", "big"} and isinstance(parsed["big"], bool), parsed)

tools = [{"type": "function", "function": {"name": "weather", "description": "Weather of a city",
                                           "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                                                          "required": ["city"]}}}]
tooled = client.chat.completions.create(model=model, messages=question, tools=tools, max_tokens=40, temperature=0)
check("tools", tooled.choices[0].message.content or tooled.choices[0].message.tool_calls, tooled)

several = client.chat.completions.create(model=model, messages=question, n=2, max_tokens=10, seed=3, logprobs=True,
                                         top_logprobs=2)
check("n and logprobs", len(several.choices) == 2 and len(several.choices[1].logprobs.content[0].top_logprobs) == 2)

completion = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, temperature=0)
check("completions", len(completion.choices[0].text) > 0)

response = client.responses.create(model=model, input=question[0]["content"], temperature=0, max_output_tokens=40)
check("responses", "Paris" in response.output_text, response)
follow = client.responses.create(model=model, input="And of Italy?", previous_response_id=response.id, temperature=0,
                                 max_output_tokens=40)
check("previous_response_id", follow.usage.input_tokens_details.cached_tokens == response.usage.total_tokens - 1,
      follow.usage)
with client.responses.stream(model=model, input=question[0]["content"], temperature=0,
                             max_output_tokens=40) as events:
    kinds = [event.type for event in events]
    final = events.get_final_response()
check("responses stream", final.output_text == response.output_text and kinds[-1] == "response.completed", kinds)

cancelled = client.chat.completions.create(model=model, messages=question, stream=True, max_tokens=2000,
                                           extra_body={"ignore_eos": True})
next(iter(cancelled))
cancelled.close()
begun = time.monotonic()
after = client.chat.completions.create(model=model, messages=question, temperature=0, max_tokens=5)
check("cancel", after.choices[0].message.content and time.monotonic() - begun < 20)

texts = ["How tall is Mount Fuji?", "Fuji is 3,776.24 m high.", "The cat sleeps on the sofa."]
embedded = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts)  # the client asks for base64
query, fuji, cat = (item.embedding for item in embedded.data)
near, far = (sum(a * b for a, b in zip(query, other)) for other in (fuji, cat))
check("embeddings", len(query) == 384 and near > far + 0.3, (near, far))
short = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts[0], dimensions=64, encoding_format="float")
check("embeddings of 64 dimensions", len(short.data[0].embedding) == 64, short.usage)

for name, wrong in {"temperature": {"temperature": "hot"}, "messages": {"messages": []}}.items():
    try:
        client.chat.completions.create(**{"model": model, "messages": question, **wrong})
        check(f"wrong {name}", False, "was accepted")
    except openai.BadRequestError as error:
        check(f"wrong {name}", name in str(error), error)

print(f"{failures} failed")
sys.exit(failures > 0)
