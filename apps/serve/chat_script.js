"use strict";
// A page for chats with the model of `longhand serve --model`. For a model without a format for
// conversations, the page continues texts instead.

const at = (id) => document.getElementById(id);
const token = location.hash.slice(1);
const turns = [];  // {role, content}
let model = null, running = null;

function show(error) {
  at("message").textContent = error;
  at("message").hidden = error === "";
}

function add_turn(role) {
  const box = document.createElement("section");
  box.className = "turn " + role;
  const name = document.createElement("h2");
  name.textContent = role === "user" ? "you" : "model";
  const text = document.createElement("div");
  text.className = "said";
  box.append(name, text);
  at("turns").append(box);
  box.scrollIntoView({block: "end"});
  return text;
}

/// Calls `part` with the JSON of each event of a streamed response.
async function read_events(response, part) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      part(JSON.parse(data));
    }
  }
}

async function complete(body, said) {
  running = new AbortController();
  at("send").hidden = true;
  at("stop").hidden = false;
  const began = performance.now();
  let tokens = 0;
  try {
    const response = await fetch(model.chat ? "/v1/chat/completions" : "/v1/completions", {
      method: "POST",
      signal: running.signal,
      headers: {"Content-Type": "application/json", "Authorization": "Bearer " + token},
      body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true},
        temperature: Number(at("temperature").value), max_tokens: Number(at("tokens").value)}),
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    await read_events(response, (event) => {
      if (event.error) throw new Error(event.error.message);
      if (event.usage) tokens = event.usage.completion_tokens;
      const choice = event.choices[0];
      if (choice) said.textContent += (model.chat ? choice.delta.content : choice.text) || "";
      said.scrollIntoView({block: "end"});
    });
  } catch (error) {
    if (error.name !== "AbortError") show(error.message);
  }
  const seconds = (performance.now() - began) / 1000;
  if (tokens > 0) {
    said.title = `${tokens} tokens in ${seconds.toFixed(1)} s, ${(tokens / seconds).toFixed(1)} a second`;
  }
  running = null;
  at("send").hidden = false;
  at("stop").hidden = true;
  at("text").focus();
}

async function send(text) {
  show("");
  if (!model.chat) {
    const said = add_turn("assistant");
    said.textContent = text;
    return complete({prompt: text}, said);
  }
  add_turn("user").textContent = text;
  turns.push({role: "user", content: text});
  const said = add_turn("assistant");
  await complete({messages: turns}, said);
  if (said.textContent === "") {
    turns.pop();
    said.parentElement.remove();
  } else {
    turns.push({role: "assistant", content: said.textContent});
  }
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("text").value;
  if (running || !model || text.trim() === "") return;
  at("text").value = "";
  send(text);
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("form").requestSubmit();
  }
});
at("stop").addEventListener("click", () => running && running.abort());
at("new").addEventListener("click", () => {
  if (running) running.abort();
  turns.length = 0;
  at("turns").replaceChildren();
  show("");
});

fetch("/v1/models").then((response) => response.json()).then((list) => {
  model = list.data[0];
  at("model").textContent = `${model.id}, reads at most ${model.context} tokens`;
  if (!model.chat) {
    document.querySelector("h1").textContent = "Continue a text";
    at("text").placeholder = "The beginning of a text";
  }
  if (token === "") show("Open this page by the address that `longhand serve` printed.");
}).catch(() => show("The server does not answer."));
